package messages

import (
	"fmt"
	"testing"
)

func BenchmarkEncodeFrame(b *testing.B) {
	for i, f := range ordinaryTurn() {
		b.Run(fmt.Sprint("frame", i+1), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(mustEncode(b, f))))
			for b.Loop() {
				mustEncode(b, f)
			}
		})
	}
}

func BenchmarkDecodeFrame(b *testing.B) {
	for i, f := range ordinaryTurn() {
		raw := mustEncode(b, f)
		b.Run(fmt.Sprint("frame", i+1), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := DecodeFrame(testAgent, raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
