/**
 * Exported projects and OpenAPI documents, deployed unchanged: which requests pass, and which gateway has which API.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { after, test } from 'node:test'
import { StrictBackend } from '../harness/strict-backend.ts'
import { home, leave, sluice, start } from '../harness/operator.ts'
import { connectPeer, GUARD_MS } from '../harness/peers.ts'
import type { Home, RunningGateway } from '../harness/program.ts'
import { put, reload, removeApi } from '../harness/reloading.ts'

const FIXTURES = resolve(import.meta.dirname, '../apis/api-fixtures')

/** A backend whose responses have its name and the target that it got. */
async function echo(name: string): Promise<StrictBackend> {
  return StrictBackend.listen(({ target }) => {
    const body = `${name} ${target}`
    return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  })
}

const production = await echo('production')
const sandbox = await echo('sandbox')
after(async () => {
  await leave()
  production.close()
  sandbox.close()
})

/** The files of the fixtures with the addresses of these backends, and without authentication. */
function fixtureHome(deployment = ''): Home {
  const at = home()
  removeApi(at, 'Test')
  const files = readdirSync(FIXTURES, { recursive: true, encoding: 'utf8' }).map(name => join(FIXTURES, name))
  for (const file of files.filter(path => statSync(path).isFile()))
    put(at, `apis/${relative(FIXTURES, file)}`, own(file))
  writeFileSync(join(at.path, 'deployment.toml'), deployment)
  return at
}

function own(file: string): string {
  return (
    readFileSync(file, 'utf8')
      .replaceAll('production.test:9000', `127.0.0.1:${production.port}`)
      .replaceAll('sandbox.test:9000', `127.0.0.1:${sandbox.port}`)
      .replaceAll('http://{host}:9000', `http://{host}:${production.port}`)
      .replaceAll('default: production.test', 'default: 127.0.0.1')
      // Limits are not supported yet, which is a warning.
      .replaceAll('10KPerMin', 'Unlimited')
      .replace('    - oauth2\n    - oauth_basic_auth_api_key_mandatory', '    - none')
      .replace(/^openapi: 3\.0\.3\n/, `$&${OPEN}: {security-types: [none]}\n`)
      .replace(/^\{\n/, `{\n  "${OPEN}": {"security-types": ["none"]},\n`)
  )
}

/** The member of a document that names its authentication schemes. */
const OPEN = 'x-wso2-application-security'

interface Answer {
  readonly status: number
  readonly lines: string
  readonly body: string
}

async function call({ port }: RunningGateway, method: string, path: string, host = 'a', more = ''): Promise<Answer> {
  const peer = await connectPeer(port)
  peer.send(`${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}Content-Length: 0\r\nConnection: close\r\n\r\n`)
  await peer.untilEnd()
  peer.destroy()
  const [lines = '', body = ''] = peer.text.split('\r\n\r\n')
  return { status: Number(lines.split(' ')[1]), lines, body }
}

/** Warnings and errors in the log. */
function complaintsOf({ program }: RunningGateway): readonly unknown[] {
  return program.events.filter(({ level }) => level === 'warn' || level === 'error').map(({ msg }) => msg)
}

/** [method, path, status, backend and target, or a part of the body]. */
const CALLS: readonly (readonly [method: string, path: string, status: number, said: string])[] = [
  ['GET', '/orders/1.0.0/list', 200, 'production /shop/list'],
  ['GET', '/orders/list?x=1', 200, 'production /shop/list?x=1'],
  ['POST', '/orders/1.0.0/list', 200, 'production /shop/list'],
  ['GET', '/orders/1.0.0/list/7', 200, 'production /shop/list/7'],
  ['GET', '/orders/1.0.0/files/a.b.txt', 200, 'production /shop/files/a.b.txt'],
  ['GET', '/orders/1.0.0/menu/a/b', 200, 'production /shop/menu/a/b'],
  ['DELETE', '/orders/1.0.0/list/7', 405, ''],
  ['GET', '/orders/1.0.0/other', 403, '900906'],
  ['GET', '/petstore/v1/pets?limit=3', 200, 'production /petstore/v1/pets?limit=3'],
  ['POST', '/petstore/v1/pets', 200, 'production /petstore/v1/pets'],
  ['GET', '/petstore/v1/pets/5', 200, 'production /petstore/v1/pets/5'],
  ['DELETE', '/petstore/v1/pets/5', 200, 'production /petstore/v1/pets/5'],
  ['PUT', '/petstore/v1/pets/5', 405, ''],
  ['GET', '/petstore/v1/toys', 403, '900906'],
  ['GET', '/petstore/v2/pets', 404, ''],
  ['GET', '/stock/2.1/items/a-1', 200, 'production /stock/items/a-1'],
  ['GET', '/stock/2.1/items', 403, '900906'],
]

/** The gateway of all tests but the one about a sandbox. */
const labels = '[apim.sync_runtime_artifacts.gateway]\ngateway_labels = ["Asia"]\n'
const shared = await start(fixtureHome(labels), [], {}, ['--watch'])

test('an API with the labels of other gateways is skipped, and the log says so', async () => {
  const gateway = shared
  const at = gateway.home
  assert.equal((await call(gateway, 'GET', '/orders/list')).status, 404)
  assert.equal((await call(gateway, 'GET', '/petstore/v1/pets')).status, 200)
  assert.match(gateway.program.err.text, /API Orders 1\.0\.0: is not deployed here: none of Default is a label/)
  const { code, out } = await sluice(at, 'check')
  assert.match(out, /^skipped {2}[^\n]*Orders-1\.0\.0\/api\.yaml:7: API Orders 1\.0\.0: is not deployed here/m)
  assert.match(out, /0 errors, 0 warnings, 2 APIs/)
  assert.equal(code, 0)
  assert.deepEqual(complaintsOf(gateway), [])
  put(at, 'deployment.toml', '[apim.sync_runtime_artifacts.gateway]\ngateway_labels = ["Asia", "Default"]\n')
  assert.deepEqual((await reload(gateway)).apis.added, ['orders/1.0.0'])
  assert.equal((await call(gateway, 'GET', '/orders/list')).status, 200)
  assert.equal((await reload(gateway)).outcome, 'applied')
  assert.deepEqual(complaintsOf(gateway), [])
})

test('an exported project and documents of OpenAPI 3.0 and 2.0 are deployed unchanged', async () => {
  const gateway = shared
  for (const [method, path, status, said] of CALLS) {
    const answer = await call(gateway, method, path)
    assert.equal(answer.status, status, `${method} ${path}: ${answer.body}`)
    if (status === 200) assert.equal(answer.body, said)
    else assert.ok(answer.body.includes(said), `${method} ${path}: ${answer.body}`)
  }
  const { out } = await sluice(gateway.home, 'endpoints')
  assert.match(out, /^orders\/1\.0\.0:sandbox .* http:\/\/127\.0\.0\.1:\d+ *$/m)
  const refused = await call(gateway, 'PUT', '/petstore/v1/pets/5')
  assert.match(refused.lines, /\r\nAllow: [^\r]*\bDELETE\b/)
  const allowed = await call(gateway, 'GET', '/orders/list', 'a', 'Origin: https://shop.example\r\n')
  assert.match(allowed.lines, /\r\nAccess-Control-Allow-Origin: https:\/\/shop\.example/i)
  assert.deepEqual(complaintsOf(gateway), [])
})

const environment = (type: string): string => `[[apim.gateway.environment]]
name = "Default"
type = "${type}"
ws_endpoint = "ws://gw.example:9099"
https_endpoint = "https://gw.example:8253"
[[apim.gateway.environment.virtual_host]]
https_endpoint = "https://localhost:8253"
http_endpoint = "http://plain.example"
`

test('a sandbox gateway uses sandbox endpoints, and APIs are served on their hosts only', async () => {
  const at = fixtureHome(environment('sandbox'))
  const gateway = await start(at)
  const answer = await call(gateway, 'GET', '/orders/1.0.0/list', `LOCALHOST:${gateway.port}`)
  assert.deepEqual([answer.status, answer.body], [200, 'sandbox /list'])
  assert.equal((await call(gateway, 'GET', '/orders/1.0.0/list', 'gw.example')).status, 404)
  // Another address of the virtual host, which `deployment_environments.yaml` does not name.
  assert.equal((await call(gateway, 'GET', '/orders/1.0.0/list', 'plain.example')).status, 200)
  // A bare document has no sandbox endpoint: an error here, which stops no other API.
  assert.equal((await call(gateway, 'GET', '/petstore/v1/pets')).status, 404)
  assert.match(gateway.program.err.text, /Pet-Store v1: has no sandbox endpoint/)
  // This key is live.
  put(at, 'deployment.toml', environment('hybrid'))
  const { outcome, restart } = await reload(gateway)
  assert.deepEqual([outcome, restart], ['applied', []])
  const both = await call(gateway, 'GET', '/orders/1.0.0/list', 'localhost')
  assert.deepEqual([both.status, both.body], [200, 'production /shop/list'])
  assert.equal((await call(gateway, 'GET', '/petstore/v1/pets')).status, 200)
  const elsewhere = '[apim.sync_runtime_artifacts.gateway]\ngateway_labels = ["Asia"]\n'
  put(at, 'deployment.toml', environment('hybrid') + elsewhere)
  assert.deepEqual((await reload(gateway)).apis.removed, ['localhost,plain.example/orders/1.0.0'])
})

test('an API without production endpoints refuses production requests', async () => {
  const gateway = shared
  const at = gateway.home
  const path = 'apis/Orders-1.0.0/api.yaml'
  const yaml = readFileSync(join(at.path, path), 'utf8')
  put(at, path, yaml.replace(/ {4}production_endpoints:[\s\S]*?(?= {4}sandbox)/, ''))
  await reload(gateway)
  const answer = await call(gateway, 'GET', '/orders/list')
  assert.equal(answer.status, 401, answer.body)
  assert.match(answer.body, /900901/)
  put(at, path, yaml)
})

test('a reload notices documents that are added, changed and removed', async () => {
  const gateway = shared
  const at = gateway.home
  const statusOf = async (path: string): Promise<number> => (await call(gateway, 'GET', path)).status
  const until = async (path: string, wanted: number): Promise<void> => {
    const end = performance.now() + GUARD_MS
    for (let last = 0; last !== wanted; last = await statusOf(path)) {
      assert.ok(performance.now() < end, `waited in vain for ${wanted} at ${path}, was answered ${last}`)
    }
  }
  const stock = own(join(FIXTURES, 'stock.json'))
  put(at, 'apis/more.json', stock.replace('"Stock"', '"More"').replace('"/stock"', '"/more"'))
  await until('/more/2.1/items/1', 200)
  put(at, 'apis/more.json', stock.replace('"Stock"', '"More"').replace('"/stock"', '"/others"'))
  await until('/others/2.1/items/1', 200)
  // These operations are in the document only.
  const project = 'apis/Orders-1.0.0/api.yaml'
  put(at, project, readFileSync(join(at.path, project), 'utf8').replace(/ {2}operations:[\s\S]*?(?= {2}threat)/, ''))
  const document = 'apis/Orders-1.0.0/Definitions/swagger.yaml'
  put(at, document, readFileSync(join(at.path, document), 'utf8').replace('  /menu/*:', '  /dishes:'))
  await until('/orders/dishes', 200)
  await until('/orders/menu/a', 403)
})
