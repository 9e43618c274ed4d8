/**
 * Every key of the catalogue is acted on, or is inert and says why. The parts of a node are built over configurations
 * that record which keys are read.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ApiProjects } from '../../src/apis/api-projects.ts'
import { AuthState } from '../../src/auth/auth-state.ts'
import { allKeys, type CatalogueKey, SECTIONS } from '../../src/config/catalogue.ts'
import { FREE_NAME } from '../../src/config/key.ts'
import { examine } from '../../src/config/load.ts'
import { ControlPlane } from '../../src/control/control-plane.ts'
import { ReactorChannels } from '../../src/control/reactor-channels.ts'
import { openLog } from '../../src/observe/log.ts'
import { MetricsColumn } from '../../src/observe/metrics.ts'
import { planListeners } from '../../src/plan/listener-planning.ts'
import { healthAddress } from '../../src/plan/ports.ts'
import { planReactors, reactorCount } from '../../src/plan/reactor-planning.ts'
import { allocateCounters } from '../../src/primary/throttle-service.ts'
import { openState } from '../../src/primary/active-state.ts'
import { controlPlan } from '../../src/primary/control-plan.ts'
import { loadHome, NOTHING_ACTIVE } from '../../src/primary/home-loading.ts'
import { Reactor } from '../../src/reactor/reactor.ts'
import { handleLevel } from '../../src/socket/handle-socket.ts'
import { handleTls } from '../../src/socket/tls-handle.ts'
import { recordReads } from './recorded-reads.ts'
import { temporaryHome } from './temporary-home.ts'

/** Keys that only a running node reads, by the place where it does. */
const READ_BY_RUNNING_NODE: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['rotate_bytes', 'rotate_interval', 'rotate_keep', 'syslog.url', 'syslog.facility', 'syslog.ca_file'].map(name => [
      `access_log.${name}`,
      'src/primary/access-log-output.ts, as the node starts',
    ]),
  ),
  ...Object.fromEntries(
    ['from_address', 'username', 'password', 'port', 'enable_start_tls', 'enable_authentication'].map(name => [
      `apim.notification.${name}`,
      'src/control/platform-mails.ts, as a mail is sent',
    ]),
  ),
  'management.dashboard': 'src/control/local-dashboard.ts, with each request for the dashboard',
  'management.dashboard_roles': 'src/control/local-dashboard.ts, with each request for the dashboard',
  'mediation.stat.tracer.collect_payloads': 'src/primary/node.ts, as a walk starts',
  'mediation.stat.tracer.collect_mediation_properties': 'src/primary/node.ts, as a walk starts',
  'transport.listener.shutdown.wait.sec': 'src/primary/node.ts, as the node stops',
  'transport.passthru_http.socket_level': 'src/primary/node.ts, where a self-test starts a process',
}

/** Inert keys that are read, and why they stay without effect. */
const READ_WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  'transport.passthru_https.listener.trust_store.key_password': 'opens keys of a trust store, which are then ignored',
  'transport.passthru_https.sender.trust_store.key_password': 'opens keys of a trust store, which are then ignored',
}

const API = readFileSync(new URL('../../conf/apis/Sample/api.yaml', import.meta.url), 'utf8')

const MODULES = {
  'modules/generator.js': 'export function generateToken() {}',
  'modules/claims.js': 'export function retrieveClaims() {}',
  'modules/validator.js': 'export function validate() {}',
  'modules/notifier.js': 'export function tokenRevoked() {}',
  'modules/grant.js': 'export function handleGrant() {} export function validateGrant() {}',
  'modules/checker.js': 'export function checkHealth() {}',
  'modules/format.js': 'export function build() {} export function format() {}',
  'modules/publisher.js': 'export function publish() {}',
  'modules/handler.js': 'export function request() {}',
}

/** Port 0 takes a free port and hides the offset, so listeners that the test does not open keep theirs. */
const FREE_PORTS = `
[transport.passthru_http]
listener.parameters.port = 0
[transport.passthru_https]
listener.parameters.port = 0
[transport.ws]
listener.parameters.port = 0
[transport.wss]
listener.parameters.port = 0
`

const ROWS = `
[[synapse_handlers]]
name = "own"
class = "modules/handler.js"
[[transport.http.proxy_profile]]
target_hosts = "plain.example"
proxy_host = "proxy.example"
proxy_port = 3128
[[transport.http.secured_proxy_profile]]
target_hosts = "secure.example"
proxy_host = "proxy.example"
proxy_port = 3128
[[apim.gateway.environment]]
name = "Default"
https_endpoint = "https://gateway.example:8253"
ws_endpoint = "ws://gateway.example:9099"
[[apim.gateway.environment.virtual_host]]
https_endpoint = "https://host.example"
[apim.throttling.redis]
url = "rediss://127.0.0.1:1"
[[apim.jwt.issuer]]
name = "issuer"
jwks.url = "https://127.0.0.1:1/jwks"
[[apim.jwt.issuer.claim_mapping]]
remote_claim = "a"
local_claim = "b"
[[servlet_access_control_filter]]
allow_ip_regex = "127.*"
[[custom_message_builders]]
content_type = "application/x-own"
class = "modules/format.js"
[[custom_message_formatters]]
content_type = "application/x-own"
class = "modules/format.js"
[[blocking.custom_message_builders]]
content_type = "application/x-own"
class = "modules/format.js"
[[blocking.custom_message_formatters]]
content_type = "application/x-own"
class = "modules/format.js"
`

/** A node with every part, on the embedded database. */
const WHOLE_NODE = `
enabled_global_handlers = ["own"]
[management]
port = 0
[apim.jwt]
enable = true
[apim.cache.gateway_token]
enable = false
[apim.cache.km_token]
enable = true
[oauth.grant_type]
kerberos.enable = true
[oauth.grant_type.own]
enable = true
grant_handler = "modules/grant.js"
[carbon_health_check]
enable = true
[[health_checker]]
name = "modules/checker.js"
properties.limit = 5
[apim.workflow]
enable = true
service_url = "https://127.0.0.1:1/bpmn"
[apim.throttling]
throttle_decision_endpoints = ["tcp://127.0.0.1:1"]
[[apim.throttling.url_group]]
traffic_manager_urls = ["tcp://127.0.0.1:1"]
traffic_manager_auth_urls = ["tcp://127.0.0.1:1"]
[apim.analytics]
enable = true
[[apim.analytics.url_group]]
analytics_url = ["tcp://127.0.0.1:1"]
analytics_auth_url = ["tcp://127.0.0.1:1"]
[apim.open_tracer]
remote_tracer.enable = true
[tracing]
otlp.endpoint = "http://127.0.0.1:1/v1/traces"
${FREE_PORTS}${ROWS}`

/** A gateway that uses the key manager of another node, and modules of the operator. */
const WORKER = `
[server]
server_role = "gateway-worker"
[apim.key_manager]
service_url = "https://127.0.0.1:1/services/"
key_validation_handler_type = "custom"
key_validation_handler_impl = "modules/validator.js"
[apim.jwt]
enable = true
generator_impl = "modules/generator.js"
enable_user_claims = true
claims_extractor_impl = "modules/claims.js"
[apim.token.revocation]
notifier_impl = "modules/notifier.js"
[apim.analytics]
enable = true
event_publisher_type = "custom"
event_publisher_impl = "modules/publisher.js"
${FREE_PORTS}${ROWS}`

/** Only loaded: a node with a database server and stores that do not exist, on its usual ports. */
const DATABASE_SERVER = `
[encryption]
key = "a key of this test that is long enough"
[database.apim_db]
type = "mysql"
hostname = "database.example"
[database.shared_db]
type = "mysql"
url = "jdbc:mysql://database.example/shared"
[keystore.primary]
file_name = "primary.jks"
[truststore]
file_name = "trust.jks"
[apim.jwt]
enable = true
`

interface RecordedHome {
  readonly home: string
  readonly dataDir: string
  readonly sets: readonly string[]
}

function homeWith(t: TestContext, toml: string): RecordedHome {
  const home = temporaryHome(t, { 'deployment.toml': toml, 'apis/Sample/api.yaml': API, ...MODULES })
  return { home, dataDir: join(home, 'data'), sets: [] }
}

/** Loads a home as a start does, over a recording configuration. */
async function load(installation: RecordedHome, reads: Set<string>) {
  const examined = examine(installation.home, [], installation.dataDir)
  assert.deepEqual(examined.errors, [])
  const configuration = recordReads(examined.configuration, reads)
  const projects = new ApiProjects(installation.home)
  return loadHome(installation, projects, NOTHING_ACTIVE, { ...examined, configuration })
}

/** Builds what a node of this home builds: plans, one reactor, and the control thread's part. */
async function buildNode(t: TestContext, toml: string, reads: Set<string>): Promise<void> {
  const installation = homeWith(t, toml)
  const loaded = await load(installation, reads)
  assert.deepEqual(loaded.errors, [])
  const { configuration } = loaded
  const { home, dataDir } = installation
  const count = reactorCount(configuration, planListeners(configuration))
  const { active, planner } = await openState({ installation, loaded, log: openLog('silent') }, count, () => {})
  t.after(() => active.tls?.stop())
  const { planned, sequences, policies, tls, signing } = active
  const counters = allocateCounters(configuration, dataDir, openLog('silent'))
  const shared = {
    configuration,
    home,
    dataDir,
    level: 'handles',
    planner,
    planned,
    sequences,
    policies,
    counters,
  } as const
  const [plan] = planReactors({ ...shared, tls: tls?.plans ?? null, signer: signing.signer })
  healthAddress(configuration)
  const reactor = new Reactor(plan!, {
    level: handleLevel(),
    tls: handleTls(),
    report: () => {},
    authState: new AuthState(plan!.authVersion, plan!.auth),
    accessLog: null,
    analytics: null,
    traces: null,
    validator: null,
    mediation: null,
    buildFilterChain: () => [],
    drained: () => {},
  })
  await reactor.start()
  const parts = { tls: handleTls(), validator: null, mediation: null }
  reactor.deploy(active.live, { removed: [], deployed: [] }, parts)
  reactor.stop()
  const context = {
    reactors: new ReactorChannels({ bug: assert.fail }),
    report: () => {},
    callPrimary: () => assert.fail(),
    metrics: new MetricsColumn(plan!.metrics, 0),
  }
  const node = controlPlan(active, installation, plan!, 0)
  const control = await ControlPlane.open(node, context)
  await control.reload(node)
  void control.firstAccount
  if (node.runsKeyManager) await control.manage({ action: 'application list', tenant: 'carbon.super' })
  await control.close()
}

const reads = new Set<string>()

test('a whole node and a gateway-worker are built over recording configurations', async t => {
  await buildNode(t, WHOLE_NODE, reads)
  await buildNode(t, WORKER, reads)
  const { configuration } = await load(homeWith(t, DATABASE_SERVER), reads)
  reactorCount(configuration, planListeners(configuration))
})

/** Keys whose value is the default of a key that is acted on. */
const FOLLOWED: ReadonlySet<string> = new Set(
  allKeys()
    .filter(({ definition }) => definition.inertReason === '' && definition.follows !== '')
    .map(({ section, definition: { follows } }) => (follows.startsWith('.') ? `${section}${follows}` : follows)),
)

/** A key with a free name is read under the names that the operator has chosen. */
function isRecorded(path: string): boolean {
  const [start = '', end = ''] = path.split(FREE_NAME)
  if (!path.includes(FREE_NAME)) return reads.has(path)
  return [...reads].some(
    read => read.startsWith(start) && read.endsWith(end) && read.length > start.length + end.length,
  )
}

test('every key that is not inert is read', () => {
  const unread = allKeys().filter(({ path, definition }) => {
    const isRead = isRecorded(path) || FOLLOWED.has(path) || path in READ_BY_RUNNING_NODE
    return definition.inertReason === '' && !isRead
  })
  assert.deepEqual(
    unread.map(({ path }) => path),
    [],
  )
})

test('no inert key is read but the listed ones, and no key that is acted on follows an inert one', () => {
  const inert = allKeys().filter(({ definition }) => definition.inertReason !== '')
  assert.deepEqual(
    inert.map(({ path }) => path).filter(path => reads.has(path) || FOLLOWED.has(path)),
    Object.keys(READ_WITHOUT_EFFECT),
  )
})

test('keys that only a running node reads are listed only where the recording cannot reach them', () => {
  const known = new Set(allKeys().map(({ path }) => path))
  const wrong = Object.keys(READ_BY_RUNNING_NODE).filter(path => !known.has(path) || reads.has(path))
  assert.deepEqual(wrong, [])
})

test('setting an inert key gives one warning, with the reason', t => {
  for (const inert of allKeys()) {
    const { section, key, definition } = inert
    if (definition.inertReason === '' || definition.required) continue
    const home = temporaryHome(t, { 'deployment.toml': fileSetting(inert) })
    const { warnings } = examine(home, [], join(home, 'data'))
    const own = warnings.filter(
      ({ key: about, expected }) => /not acted on/.test(expected) && names(about, chosen(key)),
    )
    assert.deepEqual(
      own.map(({ hint }) => hint),
      [definition.inertReason],
      `${section}.${key}`,
    )
  }
})

/** A file that sets a key, and the keys that its section requires. */
function fileSetting({ section, key, definition }: CatalogueKey): string {
  const { repeated, keys } = SECTIONS.find(({ name }) => name === section)!
  const required = Object.entries(keys).filter(([name, { required }]) => required && !name.includes(FREE_NAME))
  const lines = [...required, [key, definition] as const].map(
    ([name, definition]) => `"${chosen(name)}" = ${JSON.stringify(sample(definition))}`,
  )
  const header = section === '' ? '' : repeated ? `[[${section}]]` : `[${section}]`
  return `${header}\n${lines.join('\n')}`
}

function chosen(key: string): string {
  return key.replace(FREE_NAME, 'chosen')
}

/** Whether a warning about `section.key`, or about `section: key, other`, names a key. */
function names(about: string, key: string): boolean {
  return about === key || about.endsWith(`.${key}`) || about.split(/: |, /).slice(1).includes(key)
}

function sample({ read, defaultValue }: CatalogueKey['definition']): unknown {
  const samples = [
    defaultValue,
    'x',
    ['x'],
    1,
    'https://h.example',
    'ws://h.example',
    ['tcp://h.example:1'],
    ['ssl://h:1'],
  ]
  return samples.find(value => read(value) !== undefined)
}
