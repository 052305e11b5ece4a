package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/backup"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// salvage copies what can be read of a data folder, on which no node runs, to a backup.
func (a *app) salvage(ctx context.Context, f doctorFlags, agent string) error {
	switch _, named := a.named(true); {
	case f.asksNode(agent) || f.quarantine || f.accept != "" || f.reason != "":
		return usage("--salvage copies a whole folder and examines nothing else: leave all but --data, --root and --timeout out")
	case named:
		return usage("--salvage reads the files of a folder: leave --nats and --context out")
	case !a.remote.chosen:
		return usage("--salvage reads the files of a folder: name it with --data")
	case f.salvage == "-":
		return usage("--salvage -: a backup is read twice when it is restored: name a file")
	}
	if err := a.vacantFile(f.salvage); err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	ctx, cancel := a.limited(ctx)
	defer cancel()
	a.leftOver("salvage", f.salvage, ".salvaging-", "")
	temp, err := os.MkdirTemp(filepath.Dir(f.salvage), filepath.Base(f.salvage)+".salvaging-*")
	if err != nil {
		return err
	}
	s := &salvaging{folderExamination: folderExamination{app: a, line: a.progress()}, out: f.salvage, copied: make(map[string]uint64), taken: make(natslog.Recorded)}
	err = s.run(ctx, temp)
	s.line.end()
	if err = errors.Join(err, os.RemoveAll(temp)); err != nil {
		return err
	}
	return s.end()
}

// vacantFile says why no new file of that name can be made beside the data folder.
func (a *app) vacantFile(name string) error {
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return fail("choose another name", "%s is there already", name)
	}
	if err := writable(name, false); err != nil {
		return err
	}
	data, err := filepath.EvalSymlinks(a.remote.data)
	if err != nil {
		return fmt.Errorf("data folder %s: %w", a.remote.data, err)
	}
	beside, err := filepath.EvalSymlinks(filepath.Dir(name))
	if err != nil {
		return err
	}
	if data, err = filepath.Abs(data); err == nil {
		beside, err = filepath.Abs(beside)
	}
	if err != nil {
		return err
	}
	if beside == data || strings.HasPrefix(beside, data+string(filepath.Separator)) {
		return fail("choose another folder", "%s is in the data folder %s, which must not be changed", name, a.remote.data)
	}
	return nil
}

// salvaging is one salvage.
type salvaging struct {
	folderExamination // its messages are those that were copied
	out               string
	copied            map[string]uint64 // messages, by stream
	deleted           uint64
	unrecorded        []string // streams
	agents            []string // of what is left out, as far as is known
	manifest          *backup.Manifest
	taken             natslog.Recorded // what a restored store must know to be lost
	before            int              // how many places of it were taken out before
}

// run makes a data folder of what can be read, and a backup of that.
func (s *salvaging) run(ctx context.Context, temp string) error {
	dir, root := s.app.remote.data, s.app.remote.options.Root
	err := embedded.Salvage(ctx, dir, root, temp, s.stream, s.progress)
	s.line.end()
	if errors.Is(err, embedded.ErrRunning) {
		return fail("stop it first; `"+s.app.started+" backup` copies a store on which a node runs", "%v", err)
	}
	if err != nil {
		return err
	}
	cfg, stop, err := s.app.folderServer(temp, root, embedded.SyncRelaxed)
	if err != nil {
		return err
	}
	cfg.Taken, cfg.Progress = s.taken, func(p backup.Progress) {
		s.line.show("write %3.0f%%  %s, %d of %d  %s", 100*p.Done, p.Stream, p.Number, p.Streams, size(p.Bytes))
	}
	err = whole(s.out, func(w io.Writer) (err error) {
		if s.manifest, err = backup.Write(ctx, w, cfg); err != nil {
			return err
		}
		return s.compare(root)
	})
	return errors.Join(err, stop())
}

// compare holds what the server found of the copy to what was copied. Of other streams than the
// log and the inputs that wait it may have removed what expired.
func (s *salvaging) compare(root string) error {
	names := natslog.NamesOf(messages.Subjects{Root: root})
	must := []string{names.Inbox()}
	for p := range messages.Partitions {
		must = append(must, names.Log(messages.Partition(p)))
	}
	for _, stream := range s.manifest.Streams {
		if n := s.copied[stream.Name]; n != stream.Messages && slices.Contains(must, stream.Name) {
			return fmt.Errorf("stream %s: %d messages were copied and the server found %d of them: %s is not written; please report this", stream.Name, n, stream.Messages, s.out)
		}
	}
	return nil
}

// stream prints what of a stream is left out.
func (s *salvaging) stream(done embedded.Salvaged) {
	s.streams++
	s.messages += done.Copied
	s.deleted += done.Deleted
	s.copied[done.Stream] = done.Copied
	if len(done.Taken) > 0 {
		s.taken[done.Stream] = done.Taken
	}
	s.before += done.Before
	if done.Unrecorded {
		s.unrecorded = append(s.unrecorded, done.Stream)
	}
	for _, p := range done.Damage {
		s.damaged++
		if name := p.Agent.String(); p.Agent != (messages.AgentID{}) && !slices.Contains(s.agents, name) {
			s.agents = append(s.agents, name)
		}
		s.finding(doctor.Fail, done.Stream, p, "what was here is not copied: restored, an agent that lacks events before its newest answers that it is damaged")
	}
	if done.Torn != nil {
		s.finding(doctor.Warn, done.Stream, *done.Torn, "a crash cut this write off, as far as is known before it was acknowledged")
	}
	for _, why := range done.Unverified {
		s.damaged++
		s.finding(doctor.Fail, done.Stream, embedded.Place{Detail: "not copied: " + why}, "")
	}
	for _, agent := range done.Shortened {
		s.finding(doctor.Fail, done.Stream, embedded.Place{Agent: agent, Detail: "its newest events are lost, and the copy does not show that there were any"},
			"restored, it answers that it is damaged until it is deleted, or the loss accepted")
	}
}

// end prints the sum.
func (s *salvaging) end() error {
	a := s.app
	info, err := os.Stat(s.out)
	if err != nil {
		return err
	}
	sum := finding{"salvage", "ok", fmt.Sprintf("%s of %s copied to %s, %s", english.Plural(int(s.messages), "message", ""), english.Plural(s.streams, "stream", ""), s.out, size(info.Size()))}
	if s.deleted > 0 {
		sum.Detail += fmt.Sprintf("; %d that were deleted are not", s.deleted)
	}
	if len(s.unrecorded) > 0 {
		sum.Status = "warn"
		sum.Detail += "; whether messages are missing at the end of these streams is not known, because the record of how far they reached is missing or damaged: " + strings.Join(s.unrecorded, " ")
	}
	if s.before > 0 {
		sum.Status = "fail"
		sum.Detail += fmt.Sprintf("; %s taken out before, and the agents of what was there are damaged in the copy as well", english.Plural(s.before, "place was", "places were"))
	}
	if s.damaged > 0 {
		sum.Status = "fail"
		sum.Detail += fmt.Sprintf("; %s left out because they cannot be read, of %s as far as is known", english.Plural(s.damaged, "place is", "places are"), english.Plural(len(s.agents), "agent", ""))
	}
	a.findings([]finding{sum})
	if a.json() {
		err = a.object(struct {
			OK      bool      `json:"ok"`
			Checks  []finding `json:"checks"`
			File    string    `json:"file"`
			Copied  uint64    `json:"copied"`
			Deleted uint64    `json:"deleted"`
			LeftOut int       `json:"left_out"`
			Agents  []string  `json:"agents,omitempty"`
		}{sum.Status != "fail", []finding{sum}, s.out, s.messages, s.deleted, s.damaged, s.agents})
		if err != nil {
			return err
		}
	} else {
		a.printf("make a store of it with `%s restore %s --data FOLDER`\n", a.started, quoted(s.out))
	}
	if s.manifest.Encrypted() {
		a.note("agents in it are encrypted and their keys are not in it: keep %s until `%s restore --keys` has put them back from a copy that `backup --keys` made", a.remote.data, a.started)
	}
	if sum.Status == "fail" {
		return silent(exitFailed)
	}
	return nil
}
