package embedded_test

import (
	"os"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/eventlog/natslog/internal/answers"
)

func TestMain(m *testing.M) {
	answers.Wait = time.Minute // the machine that the tests share with others may stand still
	os.Exit(m.Run())
}
