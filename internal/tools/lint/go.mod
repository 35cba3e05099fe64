module github.com/filewright/filewright/internal/tools/lint

go 1.26.0

tool github.com/filewright/filewright/internal/tools/lint

require (
	codeberg.org/polyfloyd/go-errorlint v1.9.0
	github.com/golangci/misspell v0.8.0
	github.com/golangci/rowserrcheck v0.0.0-20260419091836-c5f79b8a11ba
	github.com/golangci/unconvert v0.0.0-20250410112200-a129a6e6413e
	github.com/gordonklaus/ineffassign v0.2.0
	github.com/gostaticanalysis/nilerr v0.1.2
	github.com/karamaru-alpha/copyloopvar v1.2.2
	github.com/kisielk/errcheck v1.20.0
	github.com/ryanrolds/sqlclosecheck v0.6.0
	github.com/sashamelentyev/usestdlibvars v1.29.0
	github.com/timakin/bodyclose v0.0.0-20260129054331-73d1f95b84b4
	go.yaml.in/yaml/v3 v3.0.5
	golang.org/x/tools v0.49.0
	honnef.co/go/tools v0.8.0-rc.1
	mvdan.cc/unparam v0.0.0-20260818115549-3f964bcb5673
)

require (
	github.com/BurntSushi/toml v1.6.0 // indirect
	github.com/gostaticanalysis/analysisutil v0.7.1 // indirect
	github.com/gostaticanalysis/comment v1.5.0 // indirect
	golang.org/x/exp/typeparams v0.0.0-20260718201538-764159d718ef // indirect
	golang.org/x/mod v0.40.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/text v0.32.0 // indirect
	golang.org/x/tools/go/packages/packagestest v0.1.1-deprecated // indirect
)
