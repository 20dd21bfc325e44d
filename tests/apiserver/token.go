// The command `token`: a token of a ServiceAccount with any lifetime. The API itself gives none under
// 600 s, so tests of an expiring or expired token get theirs here, signed with the cluster's key.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

func token(args []string) error {
	var dir, namespace, name string
	var ttl time.Duration
	fs := flag.NewFlagSet("token", flag.ContinueOnError)
	fs.StringVar(&dir, "dir", "", "directory of a running cluster")
	fs.StringVar(&namespace, "namespace", "", "namespace of the ServiceAccount")
	fs.StringVar(&name, "serviceaccount", "", "name of the ServiceAccount")
	fs.DurationVar(&ttl, "ttl", time.Hour, "lifetime; negative: a token that has expired")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if dir == "" || namespace == "" || name == "" {
		return errors.New("--dir, --namespace and --serviceaccount are needed")
	}
	client, err := adminClient(dir)
	if err != nil {
		return err
	}
	found, err := client.CoreV1().ServiceAccounts(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	text, err := signToken(dir, core.ServiceAccount{ObjectMeta: found.ObjectMeta}, ttl)
	if err != nil {
		return err
	}
	fmt.Println(text)
	return nil
}

func signToken(dir string, account core.ServiceAccount, ttl time.Duration) (string, error) {
	pem, err := os.ReadFile(filepath.Join(dir, "service-account.key"))
	if err != nil {
		return "", err
	}
	key, err := keyutil.ParsePrivateKeyPEM(pem)
	if err != nil {
		return "", err
	}
	generator, err := serviceaccount.JWTTokenGenerator(issuer, key)
	if err != nil {
		return "", err
	}
	audience := []string{issuer}
	public, private, err := serviceaccount.Claims(account, nil, nil, nil, int64(ttl.Seconds()), 0, audience)
	if err != nil {
		return "", err
	}
	return generator.GenerateToken(context.Background(), public, private)
}
