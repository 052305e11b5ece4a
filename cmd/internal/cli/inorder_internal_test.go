package cli

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
)

// numbers yields 0 to n-1.
func numbers(n int) iter.Seq2[int, error] {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return faultless(list)
}

// What is done at the same time is shown in order, also if the first one ends last.
func TestInOrder(t *testing.T) {
	const atOnce = 4
	last := make(chan struct{})
	var shown []int
	err := inOrder(t.Context(), atOnce, numbers(3*atOnce), func(_ context.Context, n int) (int, error) {
		switch n {
		case 0:
			<-last // ends after the last that runs beside it
		case atOnce - 1:
			close(last)
		}
		return n, nil
	}, func(n int) error {
		shown = append(shown, n)
		return nil
	})
	if err != nil || len(shown) != 3*atOnce || !slices.IsSorted(shown) {
		t.Errorf("got %v, %v", shown, err)
	}
	bad := errors.New("bad")
	shown = nil
	err = inOrder(t.Context(), atOnce, numbers(9), func(_ context.Context, n int) (int, error) {
		if n == 2 {
			return 0, bad
		}
		return n, nil
	}, func(n int) error {
		shown = append(shown, n)
		return nil
	})
	if !errors.Is(err, bad) || len(shown) != 2 {
		t.Errorf("got %v, %v", shown, err)
	}
}

func TestDoneOf(t *testing.T) {
	for want, got := range map[string]string{
		"3 of 20 agents done": doneOf(3, 20), "0 of 1 agent done": doneOf(0, 1), "1 agent done": doneOf(1, 0), "2 agents done": doneOf(2, 0),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
