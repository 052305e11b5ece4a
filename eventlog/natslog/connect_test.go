package natslog

import (
	"strings"
	"testing"
)

func TestConnectTellsNoSecret(t *testing.T) { // A56
	for _, servers := range []string{"nats://me:s3cret s3cret@127.0.0.1:1", "nats://me:s3cret#t0ken@127.0.0.1:1", "nats://me:s3cret,t0ken@127.0.0.1:1"} {
		if _, err := Connect(servers); err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "t0ken") {
			t.Errorf("the error is %v", err)
		}
	}
	_, err := Connect("nats://me:s3cret@127.0.0.1:1,nats://t0ken@127.0.0.1:2")
	if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "t0ken") || !strings.Contains(err.Error(), "nats://xxxxx@127.0.0.1:1") {
		t.Errorf("the error is %v", err)
	}
}
