/** `[server]`, `[super_admin]`, `[database_configuration]`: name, role and ports; first account; embedded database. */
import { either, isTrue } from '../conditions.ts'
import { actsIf, inert, live, ofKeyManager, ROLES, section, WORKER } from '../key.ts'
import { choice, integer, flag, host, secret, text } from '../kinds.ts'

const CONSOLE = 'there is no management console to stop or restart the server'
const ANY_MODE = 'nodes share state through one database server, in any mode; an embedded database is of one node'
const SOAP = 'there is no SOAP stack'

export const server = section('server', 'The node: its name, its role and the offset of its ports.', {
  hostname: host('localhost', 'Host name or IP address of the node, also in a generated certificate.'),
  node_ip: inert(
    host('', 'IP address of the node; empty: the first address of the machine.'),
    'listeners have addresses of their own; it is only the value of the properties `ip` and `carbon.local.ip`',
  ),
  offset: integer(0, '', 0, 64_535, 'Added to every port, for several instances on one machine.'),
  mode: inert(choice('single', ['single', 'ha'], 'A single node, or one of several (`ha`).'), ANY_MODE),
  base_path: ofKeyManager(
    live(
      text(
        `\${carbon.protocol}://\${carbon.host}:\${carbon.management.port}`,
        'Public address of the admin APIs and the key manager.',
      ),
    ),
  ),
  discard_empty_caches: inert(flag(false, 'Discard empty caches.'), 'empty caches hold no memory here'),
  server_role: choice(
    'default',
    ROLES,
    'Role of the node: which parts it runs. `default`: gateway, key manager and traffic manager. ' +
      '`gateway-worker`: the gateway, without a database, with the key manager at `apim.key_manager.service_url`. ' +
      '`api-key-manager`: the key manager. `traffic-manager`: counts of all gateways. `control-plane`: both. ' +
      'Publisher portal and developer portal are not built yet: a node with only such a role opens its health port, ' +
      'logs that, and never becomes ready.',
  ),
  enableMTOM: inert(flag(false, 'Enable the message transmission optimisation (MTOM).'), SOAP),
  enableSwA: inert(flag(false, 'Enable SOAP with attachments (SwA).'), SOAP),
  disable_shutdown_from_ui: inert(flag(false, 'Hide the shutdown action in the management console.'), CONSOLE),
  disable_restart_from_ui: inert(flag(false, 'Hide the restart action in the management console.'), CONSOLE),
})

export const superAdmin = section('super_admin', 'The super administrator, the first account.', {
  username: text('admin', 'Name of the account.'),
  // A worker uses it as the default of its password at the key manager.
  password: actsIf(
    either(isTrue('.create_admin_account'), WORKER),
    secret('Initial password of the account; empty: the first start generates one and prints it.'),
  ),
  create_admin_account: ofKeyManager(flag(true, 'Create the account where it does not exist.')),
})

export const databaseConfiguration = section('database_configuration', 'Access to the embedded database.', {
  enable_h2_console: inert(
    flag(false, 'Open a browser console for the embedded database.'),
    'the embedded database has no console',
  ),
})
