"""One opened site: its files, its store, and ways to its BMCs, its MAAS and its nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bmc.capability import BmcTarget, Credential
from inventory import secrets, site
from inventory.model import Node, Profile, Site
from inventory.secrets import Secret
from inventory.store import Store
from provision.errors import BadRequest
from provision.maas.client import MaasClient
from provision.maas.transport import Limits
from provision.pools.batching import Batch
from provision.settings import Settings
from provision.ssh import SshTarget


@dataclass
class Access:
    """What every command and every stage works with. Secrets are resolved at the moment of use."""

    settings: Settings
    site: Site
    store: Store
    showing: Batch = field(default_factory=Batch, repr=False)  # of pools, to MAAS and others
    _nodes: dict[str, Node] = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, settings: Settings) -> Access:
        """Read the site files and open the store.

        Raises SiteFileError, StateUnusable and the store's own errors.
        """
        settings.ensure_state()
        return cls(settings, site.load(settings.site), Store.open(settings.database))

    def node(self, name: str) -> Node:
        """Return the node called `name`; raises KeyError when the site files no longer have it."""
        if not self._nodes:
            self._nodes = {node.name: node for node in self.site.nodes}
        return self._nodes[name]

    def profile(self, node: Node) -> Profile:
        """Return the hardware profile of `node`."""
        return self.site.profiles[node.profile]

    def secret(self, reference: str) -> Secret:
        """Resolve a secret reference; relative files lie in the state folder."""
        return secrets.resolve(reference, base=self.settings.state)

    def bmc(self, node: Node) -> BmcTarget:
        """Return how to reach the BMC of `node`. Raises SecretMissing."""
        reference = self.site.credentials[node.bmc.credential]
        credential = Credential(
            username=reference.username,
            password=self.secret(reference.password).reveal(),
            kg=self.secret(reference.kg).reveal() if reference.kg else None,
        )
        return BmcTarget(
            name=node.name,
            host=node.bmc.host,
            credential=credential,
            protocol=str(node.bmc.protocol),
            port=node.bmc.port,
            redfish_port=node.bmc.redfish_port,
            fingerprint=node.bmc.fingerprint,
        )

    def maas(self) -> MaasClient:
        """Return a MAAS client, to be entered with `async with`. Raises SecretMissing."""
        return self.maas_within(Limits())

    def maas_within(self, limits: Limits) -> MaasClient:
        """Return a MAAS client that waits no longer than `limits`, to be closed. Raises SecretMissing."""
        return MaasClient(self.site.maas.url, self.secret(self.site.maas.key), limits=limits)

    def ssh(self, node: Node) -> SshTarget:
        """Return how to reach `node` by SSH; the address is the site file's, else what MAAS gave."""
        address = node.address or self.store.node(node.name).address
        if not address:
            raise BadRequest(
                "address", f"{node.name} has no address yet", f"invoke bringup --nodes {node.name}"
            )
        return SshTarget(
            node=node.name,
            address=address,
            port=node.ssh_port,
            user=self.site.ssh.user,
            key_file=self.key_file(),
            known_hosts=self.known_hosts(node),
        )

    def known_hosts(self, node: Node) -> Path:
        """Return the file that pins the host key of the node's present deployment."""
        folder = self.settings.state / "known_hosts"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / node.name

    def key_file(self) -> Path:
        """Return the private key's file. Raises SecretMissing when it is not there."""
        kind, _, path = self.site.ssh.key.partition(":")
        if kind != "file":
            raise BadRequest("site.yaml", "ssh.key must be file:PATH", "give the path of a private key")
        self.secret(self.site.ssh.key)
        return (self.settings.state / path).absolute()
