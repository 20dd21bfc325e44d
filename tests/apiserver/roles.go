// The controller that sums up cluster roles by label: `view`, `edit` and `admin` have no rules without it.
package main

import (
	"context"

	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
)

// aggregateRoles starts the controller on the API server of this directory, which is ready. It runs until ctx ends.
func aggregateRoles(ctx context.Context, dir string) error {
	client, err := adminClient(dir)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	controller := clusterroleaggregation.NewClusterRoleAggregation(factory.Rbac().V1().ClusterRoles(), client.RbacV1())
	factory.Start(ctx.Done())
	go controller.Run(ctx, 1)
	return nil
}
