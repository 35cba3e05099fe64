package pdf

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// date matches a date (ISO 32000-2, 7.9.4).
var date = regexp.MustCompile(`^D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:Z(?:00'?00'?)?|([+-])(\d\d)'?(?:(\d\d)'?)?)?$`)

// Date parses a date of the information dictionary. ok is false if it is not one.
func Date(s string) (t time.Time, ok bool) {
	m := date.FindStringSubmatch(s)
	if m == nil {
		return t, false
	}
	at := func(i, usual int) int {
		if n, err := strconv.Atoi(m[i]); err == nil {
			return n
		}
		return usual
	}
	zone := time.UTC
	if m[7] != "" {
		seconds := (at(8, 0)*60 + at(9, 0)) * 60
		if m[7] == "-" {
			seconds = -seconds
		}
		zone = time.FixedZone("", seconds)
	}
	t = time.Date(at(1, 0), time.Month(at(2, 1)), at(3, 1), at(4, 0), at(5, 0), at(6, 0), 0, zone)
	valid := t.Month() == time.Month(at(2, 1)) && t.Day() == at(3, 1) && t.Hour() == at(4, 0) && t.Year() > 0
	return t, valid
}

// DateString returns a date for the information dictionary.
func DateString(t time.Time) string {
	_, offset := t.Zone()
	if offset == 0 {
		return t.Format("D:20060102150405Z")
	}
	sign := '+'
	if offset < 0 {
		sign, offset = '-', -offset
	}
	return fmt.Sprintf("%s%c%02d'%02d'", t.Format("D:20060102150405"), sign, offset/3600, offset/60%60)
}
