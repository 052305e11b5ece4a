package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/providers/mcp"
	"github.com/reprise-dev/reprise/providers/tool"
)

const withServers = `
agents:
  assistant:
    model: demo/demo
    tool_choice: required
    tools:
      - mcp: files
        only: [read_*, write]
        except: [read_all]
        prefix: fs_
        on_unknown: {write: rerun, "*": read_only}
        approval: {read_*: never, write: args.size > 10, "*": always}
      - {mcp: search, on_unknown: pause, approval: always}
mcp:
  files: {command: [./files, /data], env: {TOKEN: "${SECRET}"}, dir: sub, timeout: 30s}
  search: {url: "https://a/mcp?key=${SECRET}", headers: {Authorization: "Bearer ${SECRET}"}}
  spare: {url: "${UNSET_URL}"}
`

func TestServers(t *testing.T) {
	c, err := Parse("conf/reprise.yaml", []byte(withServers), variables)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []mcp.Config{
		{Name: "files", Command: []string{"./files", "/data"}, Env: []string{"TOKEN=sk-variable-123456"}, Dir: "conf/sub", Timeout: 30 * time.Second},
		{Name: "search", URL: "https://a/mcp?key=sk-variable-123456", Headers: map[string]string{"Authorization": "Bearer sk-variable-123456"}},
	} {
		if got := c.MCP[i].Config(); !reflect.DeepEqual(got, want) || !c.MCP[i].Used {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	}
	if b, err := json.Marshal(c.MCP); err != nil || strings.Contains(string(b)+fmt.Sprintf("%+v", c.MCP), "sk-") {
		t.Errorf("a secret is shown: %s, %v", b, err)
	}
	if c.MCP[2].Used {
		t.Error("a server is used that no agent names")
	}
	files, search := c.Agents[0].MCP[0], c.Agents[0].MCP[1]
	if files.Server != "files" || !reflect.DeepEqual(files.Only, []string{"read_*", "write"}) || !reflect.DeepEqual(files.Except, []string{"read_all"}) || files.Prefix != "fs_" ||
		!reflect.DeepEqual(files.OnUnknown, []mcp.OnUnknownRule{{Tool: "write", OnUnknown: tool.Rerun}, {Tool: "*", OnUnknown: tool.ReadOnly}}) {
		t.Errorf("the tools of files are %+v", files)
	}
	if a := files.Approvals; len(a) != 3 || a[0].Approval != tool.Never || a[1].Approval != tool.Asked || a[2].Approval != tool.Always {
		t.Errorf("the approvals are %+v", files.Approvals)
	}
	for arguments, want := range map[string]bool{`{"size":11}`: true, `{"size":9}`: false, `{}`: true} {
		if needs, err := files.Approvals[1].ApproveIf(json.RawMessage(arguments)); (needs || err != nil) != want {
			t.Errorf("%s needs approval: %t, %v", arguments, needs, err)
		}
	}
	if search.OnUnknown[0] != (mcp.OnUnknownRule{Tool: "*", OnUnknown: tool.Pause}) || search.Approvals[0].Approval != tool.Always {
		t.Errorf("the tools of search are %+v", search)
	}
	if err := c.MCPPrograms(); err == nil || !strings.Contains(err.Error(), `conf/reprise.yaml:15:3: MCP server "files" cannot be started: program ./files cannot be run`) {
		t.Errorf("a program that is not there: %v", err)
	}
	for _, u := range c.Agents[0].MCP {
		if err := u.Validate(); err != nil {
			t.Error(err)
		}
	}
}
