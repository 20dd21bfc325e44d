// The command `seed`: writes objects into etcd as they are, past the API server: with their own uid,
// creation and status, which no request can set. Scenarios are made of such objects.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const seedTimeout = 5 * time.Minute

// seeds is what stdin says, in JSON.
type seeds struct {
	// Everything below these keys is deleted first.
	Delete []string `json:"delete"`
	// Key and object.
	Put map[string]json.RawMessage `json:"put"`
}

func addressFile(dir string) string {
	return filepath.Join(dir, "etcd-address")
}

func seed(args []string) error {
	var dir string
	fs := flag.NewFlagSet("seed", flag.ContinueOnError)
	fs.StringVar(&dir, "dir", "", "directory of a running cluster")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if dir == "" {
		return errors.New("--dir is missing")
	}
	var wanted seeds
	if err := json.NewDecoder(os.Stdin).Decode(&wanted); err != nil {
		return err
	}
	address, err := os.ReadFile(addressFile(dir))
	if err != nil {
		return err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{strings.TrimSpace(string(address))}, DialTimeout: seedTimeout,
	})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), seedTimeout)
	defer cancel()
	for _, prefix := range wanted.Delete {
		if _, err := client.Delete(ctx, prefix, clientv3.WithPrefix()); err != nil {
			return err
		}
	}
	for key, object := range wanted.Put {
		if _, err := client.Put(ctx, key, string(object)); err != nil {
			return err
		}
	}
	return nil
}
