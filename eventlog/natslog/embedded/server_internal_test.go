package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// An address that is in use is waited for, for a while; any other error is returned
// at once.
func TestAddressIsLetGo(t *testing.T) {
	inUse := fmt.Errorf("listen: %w", syscall.EADDRINUSE)
	for what, tc := range map[string]struct {
		answers []error
		within  time.Duration
		want    error
	}{
		"free":          {[]error{nil}, time.Minute, nil},
		"let go":        {[]error{inUse, inUse, nil}, 100 * time.Millisecond, nil},
		"not permitted": {[]error{inUse, fs.ErrPermission}, 100 * time.Millisecond, fs.ErrPermission},
		"kept":          {nil, time.Millisecond, syscall.EADDRINUSE},
	} {
		synctest.Test(t, func(t *testing.T) {
			tried := 0
			err := soon(tc.within, func() error {
				if tried++; tc.answers == nil {
					return inUse
				}
				return tc.answers[tried-1]
			})
			if !errors.Is(err, tc.want) || tried < len(tc.answers) {
				t.Errorf("%s: %v after %d tries", what, err, tried)
			}
		})
	}
}
