package rerun

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/reprise-dev/reprise/providers/tool"
)

// MaxScore is the largest score, and -MaxScore the least.
const MaxScore = 1e9

// Grader scores a run of an agent. It is called for the recorded run and then for the new one.
type Grader func(ctx context.Context, run AgentRun) (Score, error)

// Score is what a grader makes of a run: more is better. One outside of -[MaxScore] to MaxScore is refused.
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

// grade grades both runs.
func grade(ctx context.Context, by Grader, recorded, replayed *AgentRun) *Grades {
	g := new(Grades)
	for _, side := range []struct {
		run   *AgentRun
		score **Score
	}{{recorded, &g.Recorded}, {replayed, &g.Now}} {
		s, err := protected(func() (Score, error) { return by(ctx, *side.run) })
		if err == nil && !(math.Abs(s.Score) <= MaxScore) { // nor NaN
			err = fmt.Errorf("the score is %v: it must be a number from %g to %g", s.Score, -MaxScore, MaxScore)
		}
		if err != nil {
			g.Error = fmt.Sprintf("the %s run has no score: %v", side.run.Run, err)
			break
		}
		*side.score = &s
	}
	return g
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

// protected calls a grader, and returns a panic as an error.
func protected(call func() (Score, error)) (s Score, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return call()
}
