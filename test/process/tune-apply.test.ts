/** `tune --apply` beside a gateway that runs: what happens to `deployment.toml`, and whether the new values act. */
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { applyProposals, deploymentOf } from '../../src/cli/tune-apply.ts'
import type { Proposal } from '../../src/tune/proposals.ts'
import { argumentsFor, Transcript } from '../config/temporary-home.ts'
import { backend, dial, home, leave, SILENT, start } from '../harness/operator.ts'
import { pollPause } from '../harness/peers.ts'
import { ask, type Home } from '../harness/program.ts'

after(leave)

const SECTION = 'transport.passthru_http'
const PER_BACKEND = 'http.max.connection.per.host.port'
const OLD = `# ours\n[${SECTION}]\n"${PER_BACKEND}" = 1 # few\n`

function proposed(key: string, current: number, value: number): Proposal {
  return { section: SECTION, key, current, value, reason: 'throughput x 2.00 (95 %: 1.90 to 2.10)' }
}

interface Applied {
  readonly code: number
  readonly out: string
}

/** `meanwhile`: what happens during the measurement. */
async function applyAfter(at: Home, meanwhile: () => void, ...proposals: Proposal[]): Promise<Applied> {
  const out = new Transcript()
  const args = argumentsFor(at.path, { dataDir: at.data })
  const deployment = deploymentOf(args)
  meanwhile()
  const code = await applyProposals(args, proposals, deployment, out)
  return { code, out: out.text }
}

const apply = (at: Home, ...proposals: Proposal[]): Promise<Applied> => applyAfter(at, () => {}, ...proposals)

function homeWith(text: string): Home {
  const at = home(backend.port, 'kept')
  writeFileSync(join(at.path, 'deployment.toml'), text)
  return at
}

const current = ({ path }: Home): string => readFileSync(join(path, 'deployment.toml'), 'utf8')
const kept = ({ path }: Home): readonly string[] =>
  readdirSync(path).filter(file => /^deployment\.toml\.\d{4}-\d\d-\d\dT[\d-]+Z$/.test(file))

test('--apply keeps the old file and reloads: the new value acts on the gateway that runs', async () => {
  const at = homeWith(OLD)
  const gateway = await start(at)
  const holding = await dial(gateway)
  holding.send(`GET /t${SILENT} HTTP/1.1\r\nHost: a\r\n\r\n`)
  while (!/101600/.test(await ask(gateway.port, 'GET', '/t/'))) await pollPause()

  const { code, out } = await apply(at, proposed(PER_BACKEND, 1, 8), proposed('reactors', 1, 2))
  assert.equal(code, 0, out)
  assert.match(await ask(gateway.port, 'GET', '/t/'), / 200 /)
  assert.equal(current(at), `# ours\n[${SECTION}]\nreactors = 2\n"${PER_BACKEND}" = 8 # few\n`)
  const [file = '', ...more] = kept(at)
  assert.deepEqual(more, [])
  assert.equal(readFileSync(join(at.path, file), 'utf8'), OLD)
  assert.ok(out.includes(`is changed; the old one is ${join(at.path, file)}\n`), out)
  assert.match(out, /changed +transport\.passthru_http\.http\.max\.connection\.per\.host\.port: 1 -> 8/)
  assert.match(out, /restart +transport\.passthru_http\.reactors: .* -> 2.*: needs a restart/)
})

test('a reload that the gateway refuses leaves the old file in place, and the gateway as it was', async () => {
  const at = homeWith(OLD)
  // The command does not know how the gateway was started.
  const gateway = await start(at, [`${SECTION}.worker_pool_size_core=300`])
  const { code, out } = await apply(
    at,
    proposed('worker_pool_size_core', 400, 8),
    proposed('worker_pool_size_max', 400, 8),
  )
  assert.equal(code, 78)
  assert.match(out, /worker_pool_size_core.*\n.*refused.*: nothing has changed\n/)
  assert.match(out, /deployment\.toml has its old content again\n$/)
  assert.equal(current(at), OLD)
  assert.deepEqual(kept(at), [])
  assert.match(await ask(gateway.port, 'GET', '/t/'), / 200 /)
})

test('values that are no valid configuration are taken back, and no gateway is told of them', async () => {
  const at = homeWith(OLD)
  const { code, out } = await apply(at, proposed('worker_pool_size_max', 400, 8))
  assert.equal(code, 78)
  assert.match(out, /worker_pool_size/)
  assert.equal(current(at), OLD)
  assert.deepEqual(kept(at), [])
})

test('without a gateway that runs the change waits for the next start', async () => {
  const at = homeWith(OLD)
  const { code, out } = await apply(at, proposed(PER_BACKEND, 1, 8))
  assert.equal(code, 0)
  assert.match(out, /no gateway runs.*; the changes apply at the next start\n$/)
  assert.match(current(at), /" = 8 # few\n/)
  assert.equal(kept(at).length, 1)
})

test('without a proposal nothing is written', async () => {
  const at = homeWith(OLD)
  assert.deepEqual(await apply(at), { code: 0, out: '' })
  assert.deepEqual(kept(at), [])
})

test('a file that has changed since the measurement began is left as it is', async () => {
  const at = homeWith(OLD)
  const edited = OLD.replace('few', 'edited')
  const meanwhile = (): void => writeFileSync(join(at.path, 'deployment.toml'), edited)
  const { code, out } = await applyAfter(at, meanwhile, proposed(PER_BACKEND, 1, 8))
  assert.equal(code, 1)
  assert.match(out, /deployment\.toml has changed since the measurement began: it is left as it is\n$/)
  assert.equal(current(at), edited)
  assert.deepEqual(kept(at), [])
})

test('a file that cannot be written at the end is left as it is, and the reason is printed', async () => {
  const at = homeWith(OLD)
  const file = join(at.path, 'deployment.toml')
  const meanwhile = (): void => {
    rmSync(file)
    mkdirSync(file)
  }
  const { code, out } = await applyAfter(at, meanwhile, proposed(PER_BACKEND, 1, 8))
  assert.equal(code, 1)
  assert.match(out, /deployment\.toml is not changed: it cannot be written \(EISDIR\)\n$/)
  assert.deepEqual(kept(at), [])
})

test('a file whose section takes no further key is left as it is: set it by hand', async () => {
  const text = '[transport]\npassthru_http = { max_open_connections = 99 }\n'
  const at = homeWith(text)
  const { code, out } = await apply(at, proposed(PER_BACKEND, 1, 8))
  assert.equal(code, 1)
  assert.match(out, /is not changed: .*host\.port cannot be set in the form .*: set it by hand\n$/)
  assert.equal(current(at), text)
  assert.deepEqual(kept(at), [])
})

test('a file of Windows with comments and arrays of tables keeps all of them', async () => {
  const row = 'target_hosts = ["x.example"]\r\nproxy_host = "p"\r\nproxy_port = 3128\r\n'
  const rows = `[[transport.http.proxy_profile]]\r\n${row}`
  const at = homeWith(`# ours\r\n[${SECTION}] # plain\r\n"${PER_BACKEND}" = 1 # few\r\n${rows}`)
  const { code, out } = await apply(at, proposed(PER_BACKEND, 1, 8), proposed('reactors', 1, 2))
  assert.equal(code, 0, out)
  assert.equal(current(at), `# ours\r\n[${SECTION}] # plain\r\nreactors = 2\r\n"${PER_BACKEND}" = 8 # few\r\n${rows}`)
})

const UNPRIVILEGED = { skip: process.getuid?.() === 0 && 'an administrator may write every file' }

for (const [what, name, mode] of [
  ['file', 'deployment.toml', 0o444],
  ['folder', '.', 0o555],
] as const) {
  test(`--apply on a ${what} that cannot be written is refused before anything is measured`, UNPRIVILEGED, t => {
    const at = homeWith(OLD)
    chmodSync(join(at.path, name), mode)
    t.after(() => chmodSync(join(at.path, name), 0o755))
    assert.throws(() => deploymentOf(argumentsFor(at.path)), /--apply: .* cannot be written \(EACCES\)/)
  })
}
