/** The server itself: who it is, and the port offset that keeps several of them apart on one machine. */
import { inert, live, ROLES, section } from '../key.ts'
import { choice, count, flag, host, secret, text } from '../kinds.ts'

const CONSOLE = 'there is no management console that could restart or stop the server'
const SOAP = 'there is no SOAP stack'

export const server = section(
  'server',
  'The node: its name, its profile and the offset of its ports.',
  {
    hostname: host('localhost', 'Host name or IP address of the node; a self-signed certificate is made out to it.'),
    node_ip: inert(
      host('', 'IP address of the node; empty: the first that the machine has.'),
      'listeners have addresses of their own; it is only what the properties `ip` and `carbon.local.ip` come to',
    ),
    offset: count(0, '', 0, 64_535, 'Added to every port, so that instances on one machine stay apart.'),
    mode: choice(
      'single',
      ['single', 'ha'],
      'One node, or one of several; of their state nodes share only what is in a database, and a start with `ha` ' +
        'says so.',
    ),
    base_path: live(
      text(
        `\${carbon.protocol}://\${carbon.host}:\${carbon.management.port}`,
        'Address under which management API and key manager are reached from outside.',
      ),
    ),
    discard_empty_caches: inert(
      flag(false, 'Drop caches without entries.'),
      'caches without entries hold no memory here',
    ),
    server_role: choice(
      'default',
      ROLES,
      'Profile of the node: what it starts. `default`: gateway and key manager. `gateway-worker`: the gateway; it ' +
        'has no database, and asks the key manager of `apim.key_manager.service_url`. `api-key-manager` and ' +
        '`control-plane`: the key manager. Traffic manager, publisher portal and developer portal are not built yet: ' +
        'a node of a role with nothing else answers its health port, says so and is never ready.',
    ),
    enableMTOM: inert(flag(false, 'Message transmission optimisation.'), SOAP),
    enableSwA: inert(flag(false, 'SOAP with attachments.'), SOAP),
    disable_shutdown_from_ui: inert(flag(false, 'Hide shutdown in the management console.'), CONSOLE),
    disable_restart_from_ui: inert(flag(false, 'Hide restart in the management console.'), CONSOLE),
  },
  {
    readBy: [
      ...['primary/listener-plans.ts', 'primary/management-planning.ts', 'primary/node-parts.ts', 'primary/ports.ts'],
      'primary/preparation.ts',
    ],
  },
)

export const superAdmin = section(
  'super_admin',
  'The first account.',
  {
    username: text('admin', 'Name of the account.'),
    password: secret('Password of the account when it is made; empty: the first start makes one up and prints it.'),
    create_admin_account: flag(true, 'Make the account where there is none.'),
  },
  {
    readBy: [
      ...['authority/authority.ts', 'authority/key-manager-part.ts', 'primary/declared-planning.ts'],
      ...['registry/open.ts', 'registry/super-admin.ts'],
    ],
  },
)

export const databaseConfiguration = section('database_configuration', 'Access to the embedded database.', {
  enable_h2_console: inert(
    flag(false, 'Browse the embedded database from a browser.'),
    'the embedded database has no console',
  ),
})
