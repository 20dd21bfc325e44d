// Harness starts a real kube-apiserver with embedded etcd for the tests, in one process and without
// containers (docs/spec/real-apiserver.md). README.md describes its contract with the tests.
package main

import (
	"fmt"
	"os"
)

const usage = `usage:
  harness up --dir D [--exit-with-stdin] [--separate-etcd] [--port P] [-- KUBE-APISERVER-FLAG...]
  harness token --dir D --namespace N --serviceaccount S [--ttl 1h]
  harness seed --dir D < OBJECTS
  harness kubelet [--listen 127.0.0.1:0] [--exit-with-stdin]
`

func main() {
	commands := map[string]func([]string) error{
		"up": up, "token": token, "seed": seed, "kubelet": kubelet, "etcd": etcdChild,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "harness: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
