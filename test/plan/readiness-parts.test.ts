/** Which parts readiness tells of: those that are configured, and that a node of this role has. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allocateMetrics, METRIC, MetricsColumn } from '../../src/observe/metrics.ts'
import { nodeComponents } from '../../src/plan/node-components.ts'
import { CONFIGURED_PARTS, configuredParts } from '../../src/plan/readiness-parts.ts'
import { readiness, readinessText } from '../../src/primary/readiness.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { loadConfiguration } from '../harness/configuration.ts'

const MANAGER = '"tcp://127.0.0.1:9611"'
const GROUP = `[[apim.throttling.url_group]]
traffic_manager_urls = [${MANAGER}]
traffic_manager_auth_urls = [${MANAGER}]
`
const ANALYTICS = `[apim.analytics]
enable = true
receiver_username = "ann"
receiver_password = "of-this-test"
[[apim.analytics.url_group]]
analytics_url = ["tcp://127.0.0.1:7612"]
analytics_auth_url = ["tcp://127.0.0.1:7712"]
`
const BROKER = `[apim.throttling]
throttle_decision_endpoints = ["tcp://127.0.0.1:5672"]
`
const SERVER = (section: string, name: string): string => `[database.${section}]
type = "postgre"
hostname = "db.example"
name = "${name}"
username = "sluice"
password = "of-this-test"
`
const LOG = '[access_log]\ntarget = "file"\n'
const WORKER = '[server]\nserver_role = "gateway-worker"\n'

/** [title, deployment.toml, parts]. */
const CASES: readonly (readonly [string, string, readonly string[]])[] = [
  ['a node with nothing configured', '', ['database']],
  ['a worker', WORKER, []],
  ['a key manager', `[server]\nserver_role = "api-key-manager"\n${LOG}`, ['database']],
  ['an access log', LOG, ['database', 'access log']],
  ['analytics', ANALYTICS, ['database', 'analytics']],
  ['a broker', BROKER, ['database', 'broker']],
  ['traffic managers', GROUP + BROKER, ['database', 'broker', 'traffic managers']],
  ['no reports to them', `${GROUP}${BROKER}enable_data_publishing = false\n`, ['database', 'broker']],
  ['Redis', '[apim.throttling.redis]\nurl = "redis://127.0.0.1"\n', ['database', 'redis']],
  ['two databases', SERVER('apim_db', 'apim') + SERVER('shared_db', 'shared'), ['database', 'shared database']],
  ['one database for both', SERVER('apim_db', 'apim') + SERVER('shared_db', 'apim'), ['database']],
]

for (const [title, toml, expected] of CASES) {
  test(title, t => {
    const home = temporaryHome(t, { 'deployment.toml': toml })
    const { configuration } = loadConfiguration(home, [])
    assert.deepEqual([...configuredParts(configuration, nodeComponents(configuration), home)], expected)
  })
}

/** [part, gauge, what is told while the gauge is above 0]. */
const GAUGES: readonly (readonly [string, keyof typeof METRIC, string])[] = [
  ['database', 'apimDatabaseDown', 'the database of the key manager does not answer'],
  ['shared database', 'sharedDatabaseDown', 'the shared database does not answer'],
  ['broker', 'brokerDown', 'the message broker does not answer'],
  ['traffic managers', 'trafficManagerDown', 'there is no connection to one of them'],
  ['redis', 'throttleRedisDown', 'the Redis of shared counters does not answer'],
  ['access log', 'accessLogFailing', 'the last lines could not be written'],
  ['analytics', 'analyticsDown', 'a group of receivers takes no events; they are kept on disk'],
  ['analytics', 'analyticsSpoolFailing', 'events are lost: they cannot be kept on disk'],
]
for (const [part, gauge, detail] of GAUGES) {
  test(`${gauge} degrades ${part} until it is 0 again, and the node stays ready`, () => {
    const metrics = allocateMetrics(2)
    const column = new MetricsColumn(metrics, 1)
    const told = (): string => {
      const sources = { unready: '', isControlServing: true, runsKeyManager: true, endpoints: null }
      return readinessText(readiness({ ...sources, configured: new Set(CONFIGURED_PARTS), metrics }))
    }
    const allWell = told()
    assert.doesNotMatch(allWell, /\[-\]/)
    column.add(METRIC[gauge], 1)
    assert.equal(told(), allWell.replace(`[+]${part} ok`, `[-]${part} degraded (${detail})`))
    assert.match(told(), /\nready$/)
    column.add(METRIC[gauge], -1)
    assert.equal(told(), allWell)
  })
}
