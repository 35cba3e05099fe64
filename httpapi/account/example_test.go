package account_test

import (
	"fmt"
	"time"

	"github.com/filewright/filewright/httpapi/account"
)

func ExampleKey_Valid() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k := account.Key{Name: "laptop", Created: now, Expires: now.AddDate(0, 1, 0)}
	fmt.Println(k.Valid(now), k.Valid(now.AddDate(0, 2, 0)))
	// Output: true false
}
