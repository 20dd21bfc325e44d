// etcd, in this process or in a child process of its own (docs/spec/real-apiserver.md section 2).
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// store is a running etcd: its client address and the process that it lives in. It is not closed at
// the end: its log has been written, and closing would wait for its clients.
type store struct {
	address string
	pid     int
	failed  <-chan error
}

func startStore(f upFlags) (*store, error) {
	if f.separateEtcd {
		return spawnEtcd(f.dir)
	}
	e, err := startEtcd(f.dir)
	if err != nil {
		return nil, err
	}
	return &store{clientAddress(e), os.Getpid(), e.Err()}, nil
}

func clientAddress(e *embed.Etcd) string {
	return "http://" + e.Clients[0].Addr().String()
}

func startEtcd(dir string) (*embed.Etcd, error) {
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.UnsafeNoFsync = filepath.Join(dir, "etcd"), "error", true
	c.TickMs, c.ElectionMs = 20, 200 // a lone member waits one election timeout; the default is 1 s
	c.EnableGRPCGateway = false      // it would dial the advertised port 0 again and again
	c.QuotaBackendBytes = 8 << 30    // the default of 2 GiB can fill in a long load test
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenClientUrls, c.AdvertiseClientUrls = anyPort, anyPort
	c.ListenPeerUrls, c.AdvertisePeerUrls = anyPort, anyPort
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, err
	}
	select {
	case <-e.Server.ReadyNotify():
		return e, nil
	case err := <-e.Err():
		return nil, err
	case <-time.After(readyTimeout):
		e.Close()
		return nil, fmt.Errorf("etcd was not ready after %s", readyTimeout)
	}
}

// spawnEtcd runs this program's command `etcd` as a child, which ends when its stdin is closed: so it
// ends with this process, however that ends.
func spawnEtcd(dir string) (*store, error) {
	child := exec.Command(os.Args[0], "etcd", dir)
	child.Stderr = os.Stderr
	if _, err := child.StdinPipe(); err != nil { // held open by child until this process ends
		return nil, err
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := child.Start(); err != nil {
		return nil, err
	}
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("etcd did not start: %w", errors.Join(err, child.Wait()))
	}
	failed := make(chan error, 1)
	go func() { failed <- child.Wait() }()
	return &store{strings.TrimSpace(address), child.Process.Pid, failed}, nil
}

// etcdChild is the other side of spawnEtcd.
func etcdChild(args []string) error {
	if len(args) != 1 {
		return errors.New("exactly one directory is needed")
	}
	e, err := startEtcd(args[0])
	if err != nil {
		return err
	}
	fmt.Println(clientAddress(e))
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
