package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize/english"

	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// offline reports whether doctor is to read the files of a data folder: one was named,
// no server, and nothing that only a node does.
func (a *app) offline(f doctorFlags, agent string) bool {
	_, named := a.named(true)
	return a.remote.chosen && !named && !f.asksNode(agent)
}

// doctorFolder reads the files of a data folder on which no node runs. It reports
// whether that is so.
func (a *app) doctorFolder(ctx context.Context) (done bool, err error) {
	dir, root := a.remote.data, a.remote.options.Root
	if err := messages.ValidateRoot(root); err != nil {
		return true, usage("--root: %v", err)
	}
	x := folderExamination{app: a, line: a.progress()}
	err = embedded.Examine(ctx, dir, root, x.stream, x.progress)
	x.line.end()
	switch {
	case errors.Is(err, embedded.ErrRunning):
		return false, nil
	case err != nil:
		return true, err
	}
	return true, x.end(dir)
}

// folderExamination sums up what the files of a folder hold.
type folderExamination struct {
	app              *app
	line             *progress
	streams, damaged int
	unread           int
	messages         uint64
}

func (x *folderExamination) progress(stream string, done, total int64) {
	x.line.show("%s: %d of %d MB …", stream, done>>20, total>>20)
}

// stream prints what is wrong with a stream.
func (x *folderExamination) stream(found embedded.Examined) {
	x.streams++
	x.messages += found.Messages
	for _, p := range found.Damage {
		x.damaged++
		remedy := "restore a backup; or have it taken out with --quarantine, which keeps a copy, so that a node can be started. Until then a node does not open the stream"
		if !p.InBlock() {
			remedy = "restore a backup; or copy what can be read with --salvage, and restore that"
		}
		x.finding(doctor.Fail, found.Stream, p, remedy)
	}
	if found.Torn != nil {
		x.finding(doctor.Warn, found.Stream, *found.Torn, "a crash cut this write off, as far as is known before it was acknowledged: the server removes it")
	}
	for _, why := range found.Unverified {
		x.unread++
		x.finding(doctor.Warn, found.Stream, embedded.Place{Detail: "not verified: " + why}, "")
	}
}

func (x *folderExamination) finding(status, stream string, p embedded.Place, remedy string) {
	x.line.end()
	detail := stream + ": " + p.Detail
	if p.File != "" {
		detail = stream + ", " + p.String()
	}
	e := examination{app: x.app, line: x.line}
	e.finding(doctor.Finding{
		Check: "file", Status: status, Agent: p.Agent, Stream: stream, Seq: p.First,
		Detail: detail, Remedy: remedy,
	})
}

// end prints the sum.
func (x *folderExamination) end(dir string) error {
	sum := finding{"files", "ok", fmt.Sprintf("no node runs on %s; the files of %s with %s were read", dir, english.Plural(x.streams, "stream", ""), english.Plural(int(x.messages), "message", ""))}
	if x.unread > 0 {
		sum.Status = "warn"
	}
	if x.damaged > 0 {
		sum.Status, sum.Detail = "fail", fmt.Sprintf("%s, %s damaged", sum.Detail, english.Plural(x.damaged, "place is", "places are"))
	}
	return x.app.concluded(sum)
}

// quarantine takes what cannot be read out of the files of a data folder.
func (a *app) quarantine(ctx context.Context, f doctorFlags, agent string) error {
	if f.accept != "" || f.reason != "" || !a.offline(f, agent) {
		return usage("--quarantine works on the files of a folder on which no node runs: name it with --data, and leave all else out")
	}
	if err := messages.ValidateRoot(a.remote.options.Root); err != nil {
		return usage("--root: %v", err)
	}
	x := folderExamination{app: a, line: a.progress()}
	var failed error
	err := embedded.Quarantine(ctx, a.remote.data, a.remote.options.Root, func(q embedded.Quarantined) {
		x.streams++
		failed = errors.Join(failed, q.Err)
		for _, p := range q.Places {
			x.damaged++
			remedy := "it was taken out; the file as it was is in " + q.Folder
			if q.Err != nil {
				remedy = "nothing was taken out of this stream"
			}
			x.finding(doctor.Warn, q.Stream, p, remedy)
		}
	}, x.progress)
	x.line.end()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	sum := finding{"files", "ok", fmt.Sprintf("%s in %s of %s taken out; a node can be started on it", english.Plural(x.damaged, "place", ""), english.Plural(x.streams, "stream", ""), a.remote.data)}
	if x.damaged == 0 {
		sum.Detail = fmt.Sprintf("the files in %s are sound: nothing was taken out", a.remote.data)
	}
	return a.concluded(sum)
}
