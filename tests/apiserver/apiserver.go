// The API server itself, as cmd/kube-apiserver starts it, but on a listener of ours: port 0 is refused
// there, and a port that was free a moment ago need not be.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	basecompatibility "k8s.io/component-base/compatibility"
)

// issuer of the tokens of ServiceAccounts; any https address does.
const issuer = "https://vc-scheduler.test"

// apiserverArgs are the flags of docs/spec/real-apiserver.md section 3; the caller's come last and win.
func apiserverArgs(f upFlags, port int, etcd string) []string {
	file := func(name string) string { return filepath.Join(f.dir, name) }
	return append([]string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", // loopback is no valid endpoint address
		"--service-cluster-ip-range=10.0.0.0/24",
		"--allow-privileged=true",
		"--tls-cert-file=" + file("server.crt"),
		"--tls-private-key-file=" + file("server.key"),
		"--client-ca-file=" + file("ca.crt"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + file("service-account.key"),
		"--service-account-signing-key-file=" + file("service-account.key"),
		// These three cannot work without controllers.
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection",
	}, f.apiserver...)
}

// runAPIServer returns when ctx ends. Feature gates and logging are global: once per process.
func runAPIServer(ctx context.Context, f upFlags, listener net.Listener, etcd string) error {
	opts := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range opts.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(apiserverArgs(f, listener.Addr().(*net.TCPAddr).Port, etcd)); err != nil {
		return err
	}
	registry := opts.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return err
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	gates := registry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(opts.Logs, gates); err != nil {
		return err
	}
	opts.SecureServing.Listener = listener
	completed, err := opts.Complete(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(completed.Validate()...); err != nil {
		return err
	}
	gates.(featuregate.MutableFeatureGate).AddMetrics()
	registry.AddMetrics()
	return app.Run(ctx, completed)
}

// waitReady polls /readyz, which includes the bootstrap roles and the system priority classes.
func waitReady(ctx context.Context, dir string, done <-chan error) error {
	client, err := adminClient(dir)
	if err != nil {
		return err
	}
	deadline := time.After(readyTimeout)
	for {
		body, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil && string(body) == "ok" {
			return nil
		}
		select {
		case err := <-done:
			return fmt.Errorf("the API server did not start: %v", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return fmt.Errorf("the API server was not ready after %s: %s %v", readyTimeout, body, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func adminClient(dir string) (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfigPath(dir))
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}
