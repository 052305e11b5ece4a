package messages

import (
	"strings"
	"testing"
)

func TestSubjectsRoundTrip(t *testing.T) {
	a := AgentID{"acme", "support", "c-1_=Z"}
	for _, s := range []Subjects{{}, {Root: "prod"}, {Root: "eu.prod"}} {
		for family, subject := range map[string]string{
			"in": s.In(a), "ctl": s.Ctl(a), "q": s.Query(a), "live": s.Live(a), "dlq": s.DeadLetter(a),
		} {
			if f, got, err := s.ParseAgent(subject); err != nil || f != family || got != a {
				t.Errorf("%s: got %q, %v, error %v", subject, f, got, err)
			}
		}
		for _, family := range []string{"in", "ctl"} {
			stored := s.root() + ".inq." + a.Partition().String() + "." + family + ".acme.support.c-1_=Z"
			if f, got, err := s.ParseInbox(stored); err != nil || f != family || got != a {
				t.Errorf("%s: got %q, %v, error %v", stored, f, got, err)
			}
		}
		if got, err := s.ParseLog(s.Log(a)); err != nil || got != a {
			t.Errorf("%s: got %v, error %v, want %v", s.Log(a), got, err, a)
		}
	}
	if got, err := ParsePrompt(Prompt(a)); err != nil || got != a {
		t.Errorf("%s: got %v, error %v, want %v", Prompt(a), got, err, a)
	}
}

func TestSubjectForms(t *testing.T) {
	s := Subjects{}
	for got, want := range map[string]string{
		s.In(testAgent):          "reprise.in.default.assistant.a1",
		s.Ctl(testAgent):         "reprise.ctl.default.assistant.a1",
		s.Query(testAgent):       "reprise.q.default.assistant.a1",
		s.TenantQuery("acme"):    "reprise.q.acme",
		s.Log(testAgent):         "reprise.log.16.default.assistant.a1",
		s.Snapshots(testAgent):   "reprise.snap.16.default.assistant.a1",
		s.Blobs(testAgent):       "reprise.blob.16.default.assistant.a1",
		s.BlobsOf(16):            "reprise.blob.16.>",
		s.LogOf(16):              "reprise.log.16.>",
		s.InboxOf(16):            "reprise.inq.16.>",
		s.Definition("ab12"):     "reprise.def.ab12",
		s.Any("in"):              "reprise.in.>",
		s.Live(testAgent):        "reprise.live.default.assistant.a1",
		s.DeadLetter(testAgent):  "reprise.dlq.default.assistant.a1",
		Prompt(testAgent):        "agents.prompt.assistant.default.a1",
		Status(testAgent):        "agents.status.assistant.default.a1",
		Question(testAgent, "x"): "agents.answer.assistant.default.a1.x",
		s.Replies("acme", "ann"): "_REPLY.reprise.acme.ann",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestInvalidSubjectsAreRefused(t *testing.T) {
	s := Subjects{}
	for subject, parse := range map[string]func(string) error{
		"":                                        func(x string) error { _, _, err := s.ParseAgent(x); return err },
		"reprise.in.default.assistant":            func(x string) error { _, _, err := s.ParseAgent(x); return err },
		"reprise.in.default.assistant.a.1":        func(x string) error { _, _, err := s.ParseAgent(x); return err },
		"reprise.in.default.assistant.a b":        func(x string) error { _, _, err := s.ParseAgent(x); return err },
		"reprise.in.default.assistant.":           func(x string) error { _, _, err := s.ParseAgent(x); return err },
		"other.in.default.assistant.a1":           func(x string) error { _, _, err := s.ParseAgent(x); return err },
		"reprise.log.default.assistant.a1":        func(x string) error { _, _, err := s.ParseAgent(x); return err },
		"reprise.inq.15.in.default.assistant.a1":  func(x string) error { _, _, err := s.ParseInbox(x); return err },
		"reprise.inq.016.in.default.assistant.a1": func(x string) error { _, _, err := s.ParseInbox(x); return err },
		"reprise.inq.16.q.default.assistant.a1":   func(x string) error { _, _, err := s.ParseInbox(x); return err },
		"reprise.inq.16.in.assistant.a1":          func(x string) error { _, _, err := s.ParseInbox(x); return err },
		"reprise.log.15.default.assistant.a1":     func(x string) error { _, err := s.ParseLog(x); return err },
		"reprise.log.272.default.assistant.a1":    func(x string) error { _, err := s.ParseLog(x); return err },
		"reprise.log.+16.default.assistant.a1":    func(x string) error { _, err := s.ParseLog(x); return err },
		"reprise.log.x.default.assistant.a1":      func(x string) error { _, err := s.ParseLog(x); return err },
		"reprise.log.16.default.assistant.*":      func(x string) error { _, err := s.ParseLog(x); return err },
		"agents.prompt.assistant.a1":              func(x string) error { _, err := ParsePrompt(x); return err },
		"agents.prompt.assistant.default.>":       func(x string) error { _, err := ParsePrompt(x); return err },
		"others.prompt.assistant.default.a1":      func(x string) error { _, err := ParsePrompt(x); return err },
	} {
		if err := parse(subject); err == nil || AsError(err).Code != BadAddress {
			t.Errorf("%q: got error %v, want %s", subject, err, BadAddress)
		}
	}
	_, a, err := s.ParseInbox("reprise.inq.0.in.default.assistant.a1")
	if a != testAgent || err == nil || !strings.Contains(err.Error(), "publish to reprise.in.default.assistant.a1") {
		t.Errorf("wrong partition: got %v, error %v, want the valid subject in the error", a, err)
	}
}

func TestAllowReply(t *testing.T) { // A104
	allowed := []string{"", "_INBOX.abc.1", "_R_.x.y", "my.answers", "reprised.x", "reprise-x", "agent.x", "x.reprise.in", "_actors", "x.$JS", "größe.x"}
	refused := []string{
		"reprise", "reprise.in.default.assistant.a1", "reprise.log.1.x", "reprise.>", "agents", "agents.prompt.x.y.z",
		"$JS.API.STREAM.DELETE.X", "$SYS.REQ", "$KV.b.k", "$", "_actor", "_actor.n1", "*", ">", "a.*", "a.>", "*.in.x", "a*b",
		"a b", "a\tb", "a\r\nPUB x 0\r\n\r\n", "a\x00b", "a\x1b[2J", "a\u00a0b", "a\xffb", ".a", "a.", "a..b", ".", strings.Repeat("a", maxReply+1),
	}
	for _, s := range []Subjects{{}, {Root: "prod"}, {Root: "eu.prod"}} {
		for _, subject := range allowed {
			if err := s.AllowReply("acme", subject); err != nil {
				t.Errorf("root %q: %q: got error %v, want none", s.Root, subject, err)
			}
		}
		for _, subject := range append(refused, s.root(), s.root()+".in.a.b.c") {
			if err := s.AllowReply("acme", subject); err == nil || AsError(err).Code != ForbiddenReply {
				t.Errorf("root %q: %q: got error %v, want %s", s.Root, subject, err, ForbiddenReply)
			}
		}
	}
	if err := (Subjects{}).AllowReply("", "prod.x"); err != nil {
		t.Errorf("prod.x with the default root: got error %v, want none", err)
	}
}

// No answers are sent to a reply subject of another tenant or user.
func TestRepliesOfTenants(t *testing.T) { // A104
	s := Subjects{}
	own := s.Replies("acme", "ann") + ".x"
	for _, c := range []struct {
		tenant, subject string
		named, asked    bool
	}{
		{"acme", own, true, true},
		{"acme", s.Replies("acme", "bob"), true, true},
		{"evil", own, false, false},
		{"acm", own, false, false},
		{"", own, false, false},
		{"acme", Subjects{Root: "prod"}.Replies("acme", "ann"), false, false},
		{"acme", "_REPLY.reprise.acme", false, false},
		{"acme", "_REPLY", false, false},
		{"acme", "_R_.AbCdEf.12345678", false, true},
		{"acme", "_GR_.AbCdEf.12345678._INBOX.x", false, true},
		{"acme", "_INBOX.x", true, true},
	} {
		for what, got := range map[string]struct {
			err  error
			want bool
		}{
			"named": {s.AllowNamedReply(c.tenant, c.subject), c.named},
			"asked": {s.AllowReply(c.tenant, c.subject), c.asked},
		} {
			if (got.err == nil) != got.want || got.err != nil && AsError(got.err).Code != ForbiddenReply {
				t.Errorf("%s, for %q, %s: got error %v, want allowed: %t", c.subject, c.tenant, what, got.err, got.want)
			}
		}
	}
	a := AgentID{"acme", "support", "c1"}
	for subject, tenant := range map[string]string{
		s.Query(a): "acme", s.TenantQuery("acme"): "acme", s.StoreQuery(): "", Prompt(a): "acme", Status(a): "acme",
		"$SRV.PING": "", "agents.prompt.x": "", "": "",
	} {
		if got := s.TenantAt(subject); got != tenant {
			t.Errorf("tenant of %s: got %q, want %q", subject, got, tenant)
		}
	}
}
