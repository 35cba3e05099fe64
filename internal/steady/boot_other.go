//go:build !linux

package steady

import "time"

func sinceBoot() func(time.Time) time.Duration { return time.Since }
