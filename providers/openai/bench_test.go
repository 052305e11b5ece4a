package openai

import (
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/providertest"
)

func BenchmarkCall(b *testing.B) {
	s, err := providertest.Start(providertest.TwoStep("echo", `{"text":"ping"}`), providertest.Config{Lenient: true, Forget: true})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	p := New("", BaseURL(s.URL))
	r := providers.Request{Model: "m", Instructions: "Be brief.", Items: []messages.Item{messages.Text(messages.RoleUser, "hello")},
		Tools: []providers.ToolSpec{{Name: "echo", Parameters: []byte(`{"type":"object","properties":{"text":{"type":"string"}}}`)}}}
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Generate(b.Context(), r, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := p.Generate(b.Context(), r, nil); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}
