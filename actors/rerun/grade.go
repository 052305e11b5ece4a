package rerun

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/reprise-dev/reprise/providers/tool"
)

// Grader gives a run of an agent a score. It is called for the recorded run and then for the new one.
type Grader func(ctx context.Context, run AgentRun) (Score, error)

// Score is what a grader makes of a run: more is better.
type Score struct {
	Score  float64 `json:"score"`
	Reason string  `json:"reason,omitempty"`
}

// Grades are the scores of both runs.
type Grades struct {
	Recorded *Score `json:"recorded,omitempty"`
	Now      *Score `json:"now,omitempty"`
	// Error is why a score is not there.
	Error string `json:"error,omitempty"`
}

// grade grades both runs. One that has failed has no score.
func (r *Result) grade(ctx context.Context, by Grader) {
	if by == nil || r.Result == Failed {
		return
	}
	r.Grades = new(Grades)
	for _, run := range []*AgentRun{r.recorded, r.replayed} {
		s, err := graded(ctx, by, *run)
		switch {
		case err != nil:
			r.Grades.Error = fmt.Sprintf("the %s run has no score: %v", run.Run, err)
			return
		case run.Run == RunRecorded:
			r.Grades.Recorded = &s
		default:
			r.Grades.Now = &s
		}
	}
}

// graded returns the score of a run, which is a number.
func graded(ctx context.Context, by Grader, run AgentRun) (s Score, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the grader panicked: %v", p)
		}
	}()
	s, err = by(ctx, run)
	if err == nil && (math.IsNaN(s.Score) || math.IsInf(s.Score, 0)) {
		err = fmt.Errorf("the score is %v: return a number", s.Score)
	}
	return s, err
}

// ToolGrader returns a grader that calls a tool with the run as its arguments. The result is a number, or
// JSON with a score and perhaps a reason.
func ToolGrader(t tool.Tool) Grader {
	return func(ctx context.Context, run AgentRun) (Score, error) {
		b, err := json.Marshal(run)
		if err != nil {
			return Score{}, err
		}
		output, err := t.Call(ctx, b)
		if err != nil {
			return Score{}, err
		}
		return readScore(output)
	}
}

// readScore reads what a grader has printed.
func readScore(output string) (Score, error) {
	var number *float64
	if json.Unmarshal([]byte(output), &number) == nil && number != nil {
		return Score{Score: *number}, nil
	}
	var read struct {
		Score  *float64 `json:"score"`
		Reason string   `json:"reason"`
	}
	if json.Unmarshal([]byte(output), &read) == nil && read.Score != nil {
		return Score{*read.Score, read.Reason}, nil
	}
	const most = 100
	return Score{}, fmt.Errorf(`it printed %.*q: print a number, or {"score":0.8,"reason":"…"}, and nothing else`, most, output)
}
