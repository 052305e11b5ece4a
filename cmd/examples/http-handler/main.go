// Http-handler streams answers of an agent as server-sent events. A client that goes away does not stop the turn: it
// asks again with the same id and gets the same answer.
//
//	go run ./cmd/examples/http-handler -listen 127.0.0.1:8090
//	curl -N -H 'Idempotency-Key: q1' -d 'What is 17 times 3?' http://127.0.0.1:8090/agents/ann
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

// answer streams what an agent answers to the body of a request.
func answer(agents *client.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		in := messages.Input{ID: r.Header.Get("Idempotency-Key"), Content: messages.TextContent(string(text))}
		w.Header().Set("Content-Type", "text/event-stream")
		for ev, err := range agents.AskInput(r.Context(), "assistant/"+r.PathValue("key"), in) {
			if err != nil { // r.Context() has ended, or the agent has refused
				ev = client.Event{Type: "error", Text: err.Error()}
			}
			if data, err := json.Marshal(ev); err == nil {
				fmt.Fprintf(w, "event: %s\ndata: %s\n\n", ev.Type, data)
			}
			if http.NewResponseController(w).Flush() != nil {
				return // the turn continues
			}
		}
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8090", "address of the HTTP server")
	data := flag.String("data", "data", "folder of the log")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	node, err := cluster.Start(ctx, cluster.Config{Data: *data, Providers: providers.Set{"demo": demo.New()},
		Agents: []actors.Definition{{Kind: "assistant", Model: "demo/demo", Tools: []tool.Tool{toolbox.Calculator()}}}})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	mux := http.NewServeMux()
	mux.Handle("POST /agents/{key}", answer(node.Client()))
	server := http.Server{Addr: *listen, Handler: mux}
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.Background()) })
	log.Print("listening on ", *listen)
	log.Print(server.ListenAndServe())
}
