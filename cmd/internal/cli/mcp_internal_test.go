package cli

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reprise-dev/reprise/providers/mcp"
)

// A node that starts waits for a server whose first attempt has failed, and for none longer than it may.
func TestAwait(t *testing.T) {
	for name, refused := range map[string]int32{"at once": 0, "at the second attempt": 2, "never": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := sdk.NewServer(&sdk.Implementation{Name: "there", Version: "1"}, nil)
			there.AddTool(&sdk.Tool{Name: "a", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
			handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return there }, nil)
			var asked atomic.Int32
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch n := asked.Add(1); {
				case n > refused:
					handler.ServeHTTP(w, r)
					return
				case n > 2:
					cancel()
				}
				http.Error(w, "not yet", http.StatusForbidden)
			}))
			s, err := mcp.New(mcp.Config{Name: "there", URL: site.URL, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close(); site.CloseClientConnections(); site.Close() })
			if err := await(ctx, s); (err != nil) != (name == "never") || err != nil && !strings.Contains(err.Error(), "Forbidden") {
				t.Errorf("it waits with %v", err)
			}
		})
	}
}
