package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"syscall"
)

// listen listens on the address of a flag.
func listen(flag, addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		_, port, _ := net.SplitHostPort(addr)
		return nil, fmt.Errorf("port %s is in use by %s; choose another address with --%s", port, portHolder(addr), flag)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return ln, nil
}

// checkListen returns an error if the server cannot listen on its addresses. It is called before the
// slow start, and before the data directory is created.
func checkListen(cfg *serverConfig) error {
	for _, l := range []struct{ flag, addr string }{{"listen", cfg.listen}, {"metrics-listen", cfg.metricsLn}, {"debug-listen", cfg.debugLn}} {
		if l.addr == "" {
			continue
		}
		ln, err := listen(l.flag, l.addr)
		if err != nil {
			return err
		}
		ln.Close()
	}
	return nil
}

// isLoopback reports whether a listener is reachable only from this host.
func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// serveOperator starts the operator's listeners, if configured. end stops them.
func (a *app) serveOperator(cfg *serverConfig) (end func(), err error) {
	var servers []*http.Server
	end = func() {
		for _, s := range servers {
			s.Close()
		}
	}
	for _, l := range []struct {
		flag, addr string
		handler    func() http.Handler
	}{{"metrics-listen", cfg.metricsLn, a.node.Internal}, {"debug-listen", cfg.debugLn, profiles}} {
		if l.addr == "" {
			continue
		}
		ln, err := listen(l.flag, l.addr)
		if err != nil {
			end()
			return nil, err
		}
		s := &http.Server{Handler: l.handler(), ReadHeaderTimeout: cfg.headerTime, IdleTimeout: cfg.idleTime, MaxHeaderBytes: 16 << 10}
		servers = append(servers, s)
		a.log.Info("serving operator endpoints", "flag", l.flag, "address", ln.Addr().String())
		go func() {
			if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				a.log.Error("operator endpoints stopped unexpectedly", "flag", l.flag, "err", err)
			}
		}()
	}
	return end, nil
}

// profiles serves net/http/pprof. It answers only requests to names of this host, so that pages of
// other sites cannot read the profiles.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "use localhost or a loopback address", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
