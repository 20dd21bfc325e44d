// The command `up`: etcd, then the API server, then one line of JSON, then until the end is asked for.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// Only so that what never comes ends; a start takes seconds, on a machine that does much else a minute.
	readyTimeout = 5 * time.Minute
	portTimeout  = time.Minute
	// Open watches hold the API server's graceful end; nothing of it needs saving after that.
	stopTimeout = 2 * time.Second
)

type upFlags struct {
	dir           string
	exitWithStdin bool
	separateEtcd  bool
	port          int
	apiserver     []string
}

// ready is the line on stdout; its names are part of the contract.
type ready struct {
	Kubeconfig string  `json:"kubeconfig"`
	Server     string  `json:"server"`
	CA         string  `json:"ca"`
	Pid        int     `json:"pid"`
	EtcdPid    int     `json:"etcd_pid"`
	ReadyS     float64 `json:"ready_s"`
}

func up(args []string) error {
	started := time.Now()
	f, err := parseUp(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	ctx, cancel := endContext(f.exitWithStdin)
	defer cancel()

	listener, err := listen(f)
	if err != nil {
		return err
	}
	server := "https://" + listener.Addr().String()
	if err := writeCredentials(f.dir, server); err != nil {
		return err
	}
	store, err := startStore(f)
	if err != nil {
		return err
	}

	if err := os.WriteFile(addressFile(f.dir), []byte(store.address), 0o600); err != nil {
		return err
	}

	done := make(chan error, 1)
	go func() { done <- runAPIServer(ctx, f, listener, store.address) }()
	if err := waitReady(ctx, f.dir, done); err != nil {
		if ctx.Err() != nil { // asked to end before it was ready
			return nil
		}
		return err
	}
	if err := aggregateRoles(ctx, f.dir); err != nil {
		return err
	}
	line := ready{kubeconfigPath(f.dir), server, filepath.Join(f.dir, "ca.crt"), os.Getpid(), store.pid,
		time.Since(started).Seconds()}
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		return err
	}
	return waitEnd(ctx, done, store.failed)
}

// endContext ends with SIGTERM, with SIGINT and, if withStdin, with the end of stdin.
func endContext(withStdin bool) (context.Context, context.CancelFunc) {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	if withStdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	return ctx, cancel
}

func waitEnd(ctx context.Context, done, storeFailed <-chan error) error {
	select {
	case err := <-done:
		return fmt.Errorf("the API server ended by itself: %v", err)
	case err := <-storeFailed:
		return fmt.Errorf("etcd ended by itself: %v", err)
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(stopTimeout):
		return nil
	}
}

func parseUp(args []string) (upFlags, error) {
	var f upFlags
	fs := flag.NewFlagSet("up", flag.ContinueOnError)
	fs.StringVar(&f.dir, "dir", "", "directory of this cluster: certificates, kubeconfig, etcd's data")
	fs.BoolVar(&f.exitWithStdin, "exit-with-stdin", false, "stop when stdin is closed")
	fs.BoolVar(&f.separateEtcd, "separate-etcd", false, "run etcd in a child process, to measure it alone")
	fs.IntVar(&f.port, "port", 0, "port; 0: the one that this directory had before, else a free one")
	if err := fs.Parse(args); err != nil {
		return f, err
	}
	f.apiserver = fs.Args()
	if f.dir == "" {
		return f, errors.New("--dir is missing")
	}
	var err error
	f.dir, err = filepath.Abs(f.dir)
	return f, err
}

// listen takes the port at once, so that no other process can take it while etcd starts. A directory
// keeps its port: a restarted API server is found again by clients that were connected to it.
func listen(f upFlags) (net.Listener, error) {
	file := filepath.Join(f.dir, "port")
	port := f.port
	if port == 0 {
		if text, err := os.ReadFile(file); err == nil {
			if port, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
				return nil, fmt.Errorf("%s does not have a port: %w", file, err)
			}
		}
	}
	listener, err := listenSoon(port)
	if err != nil {
		return nil, err
	}
	port = listener.Addr().(*net.TCPAddr).Port
	return listener, os.WriteFile(file, []byte(strconv.Itoa(port)), 0o600)
}

// listenSoon tries again for a while: between two starts a connection of somebody else may have got
// the port for its own end.
func listenSoon(port int) (net.Listener, error) {
	deadline := time.Now().Add(portTimeout)
	for {
		listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return listener, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}
