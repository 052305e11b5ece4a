//go:build unix

package clustertest_test

import (
	"fmt"
	"testing"

	"github.com/reprise-dev/reprise/cluster/clustertest"
)

// A child is at work at the shop when the node of its parent is killed, its own, or
// both: the call ends once, and the tree shows both.
func TestChildrenOfTheKilled(t *testing.T) { // A71
	for _, who := range []string{"parent", "child", "both"} {
		t.Run(who, func(t *testing.T) {
			w := clustertest.New(t, clustertest.Nodes(3))
			gate := w.HoldShop(func(v clustertest.Visit) bool { return v.Attempt == 1 })
			defer gate.Release()
			parent, child := "", ""
			for i := 0; i < 12 && (child == "" || w.Owner(parent) == w.Owner(child)); i++ { // until they live apart
				parent = fmt.Sprintf("worker/%s%d", who, i)
				w.Send(parent, parent[len("worker/"):], clustertest.Ask+":"+clustertest.Pay)
				child = w.Child(parent)
				w.Until(child, "tool.started")
			}
			w.Eventually("the tree shows both at work, and their owners", func() bool { // who may change
				tree, want := w.Tree(parent), []string{w.Owner(parent).ID(), w.Owner(child).ID()}
				return len(tree) == 2 && tree[0].Owner == want[0] && tree[1].Owner == want[1] && tree[0].Phase == "running"
			})
			w.Reached(gate, func() bool { return false })
			of, below := w.Owner(parent), w.Owner(child)
			if who != "child" {
				of.Kill()
			}
			if who != "parent" && below.Alive() {
				below.Kill()
			}
			gate.Release()
			id := parent[len("worker/"):]
			if got := w.Until(parent, "turn.completed"); got.Output != clustertest.Output(id, clustertest.Ask+":"+clustertest.Pay) {
				t.Errorf("%+v", got)
			}
			up, down := w.Events(parent), w.Events(child)
			if clustertest.Count(up, "tool.completed") != 1 || clustertest.Count(up, "child.completed") != 1 || clustertest.Count(down, "turn.completed") != 1 {
				t.Errorf("%v\n%v", up, down)
			}
			w.Settled()
			w.Eventually("the tree shows both at rest", func() bool {
				tree := w.Tree(parent)
				return len(tree) == 2 && tree[0].Phase == "idle" && tree[1].Phase == "idle" && tree[0].Owner == w.Owner(parent).ID()
			})
			w.Prove()
		})
	}
}
