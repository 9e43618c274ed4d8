/** The parts that a node starts by `server.server_role`, and warnings of parts that are not built. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { BUILT_ROLES, ROLES } from '../../src/config/key.ts'
import { nodeComponents } from '../../src/plan/node-components.ts'
import { ScriptedBackend } from '../harness/peers.ts'
import { ask, freePort, type Home, launch, LAUNCHER, makeHome, Program, startProgram } from '../harness/program.ts'

const backend = await ScriptedBackend.listen(peer => {
  void peer.untilText('\r\n\r\n').then(() => peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
})
const homes: Home[] = []
const programs: Program[] = []
after(async () => {
  for (const program of programs) await program.kill()
  for (const home of homes) home.remove()
  backend.close()
})

function home(server: string): Home {
  const made = makeHome(backend.port, `[server]\n${server}\n`, 'new')
  homes.push(made)
  return made
}

const notBuilt = (role: string, part: string): string =>
  `server.server_role is ${role}, and the ${part} is not built yet`
const LEFT_OUT = 'server.server_role is default; these components are not built yet: publisher portal, developer portal'

type Runs = 'the gateway' | 'a key manager' | 'a traffic manager' | 'nothing'

/** [role, the part that runs, parts that are not built]. */
const STARTED: readonly (readonly [role: (typeof ROLES)[number], runs: Runs, lacks: readonly string[]])[] = [
  ['default', 'the gateway', []],
  ['gateway-worker', 'the gateway', []],
  ['control-plane', 'a key manager', ['publisher portal', 'developer portal']],
  ['api-key-manager', 'a key manager', []],
  ['traffic-manager', 'a traffic manager', []],
  ['api-publisher', 'nothing', ['publisher portal']],
  ['api-devportal', 'nothing', ['developer portal']],
]

test('the table has every role, and BUILT_ROLES those that start a part', () => {
  assert.deepEqual(STARTED.map(([role]) => role).sort(), [...ROLES].sort())
  const built = STARTED.flatMap(([role, runs]) => (runs === 'nothing' ? [] : role))
  assert.deepEqual(built.sort(), [...BUILT_ROLES].sort())
})

function told(program: Program, wanted: string): readonly unknown[] {
  return program.events
    .filter(({ level, msg }) => level === wanted && String(msg).includes('not built yet'))
    .map(({ msg }) => msg)
}

/** The name of the last process with the data folder, which every role writes. */
const NAME_FILE = 'process'

for (const [role, runs, lacks] of STARTED) {
  const said = lacks.map(part => notBuilt(role, part))
  test(`role ${role} starts ${runs}${runs === 'nothing' ? ', and is never ready' : ''}`, async () => {
    if (runs === 'a key manager') return startsKeyManager(role, said)
    if (runs === 'a traffic manager') return startsTrafficManager(role)
    if (runs === 'the gateway') {
      const { program, port, healthPort } = await started(role)
      assert.match(await ask(port, 'GET', '/t/1.0.0/x'), /^HTTP\/1\.1 200 /)
      assert.match(await ask(healthPort, 'GET', '/readyz'), /^HTTP\/1\.1 200 /)
      assert.deepEqual(told(program, 'warn'), [])
      assert.deepEqual(told(program, 'info'), role === 'default' ? [LEFT_OUT] : [])
      return
    }
    const at = home(`server_role = "${role}"`)
    const program = launch(at, [])
    programs.push(program)
    await program.said.until(/^started$/m)
    assert.doesNotMatch(program.said.text, /listening on/)
    const [, port] = await program.said.until(/^health on http:\/\/\S*:(\d+)\/healthz$/m)
    assert.match(await ask(Number(port), 'GET', '/healthz'), /^HTTP\/1\.1 200 /)
    const readiness = await ask(Number(port), 'GET', '/readyz')
    assert.match(readiness, /^HTTP\/1\.1 503 /)
    assert.ok(readiness.endsWith(`\r\n\r\n${said.join('\n')}\n`))
    assert.deepEqual(told(program, 'warn'), said)
    const reload = new Program(process.execPath, [LAUNCHER, 'reload', '--home', at.path])
    assert.deepEqual(await reload.exited, { code: 1, signal: null })
    assert.equal(reload.err.text, `this node runs no gateway: server.server_role is ${role}\n`)
    program.signal('SIGTERM')
    assert.deepEqual(await program.exited, { code: 0, signal: null })
    assert.deepEqual(readdirSync(join(at.path, 'data')), [NAME_FILE])
  })
}

async function startsKeyManager(role: string, said: readonly string[]): Promise<void> {
  const at = home(`server_role = "${role}"`)
  const program = launch(at, ['management.enable=true'])
  programs.push(program)
  await program.said.until(/^ready$/m)
  assert.doesNotMatch(program.said.text, /listening on/)
  const [, port] = await program.said.until(/^health on http:\/\/\S*:(\d+)\/healthz$/m)
  assert.match(await ask(Number(port), 'GET', '/readyz'), /^HTTP\/1\.1 200 /)
  assert.deepEqual(told(program, 'warn'), said)
  program.signal('SIGTERM')
  assert.deepEqual(await program.exited, { code: 0, signal: null })
  const left = readdirSync(join(at.path, 'data')).sort()
  assert.deepEqual(left, ['admin-password', 'encryption-key', 'listener.pem', NAME_FILE, 'registry.db'])
}

async function startsTrafficManager(role: string): Promise<void> {
  const receiver = await freePort()
  const program = launch(home(`server_role = "${role}"`), [
    `apim.throttling.receiver_url=ssl://127.0.0.1:${receiver}`,
    'apim.throttling.receiver_password=of this test',
  ])
  programs.push(program)
  await program.said.until(/^ready$/m)
  assert.doesNotMatch(program.said.text, /listening on/)
  const [, port] = await program.said.until(/^health on http:\/\/\S*:(\d+)\/healthz$/m)
  assert.match(await ask(Number(port), 'GET', '/readyz'), /^HTTP\/1\.1 200 /)
  const socket = connectTls({ port: receiver, host: '127.0.0.1', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  socket.destroy()
  program.signal('SIGTERM')
  assert.deepEqual(await program.exited, { code: 0, signal: null })
}

test('a traffic manager without a password for gateways refuses to start', async () => {
  const program = launch(home('server_role = "traffic-manager"'), ['apim.throttling.receiver_url=tcp://127.0.0.1:1'])
  programs.push(program)
  const { code } = await program.exited
  assert.equal(code, 1)
  assert.match(program.err.text, /receiver_password is empty: set it, or super_admin\.password/)
})

async function started(role: string) {
  const running = await startProgram(home(`server_role = "${role}"`))
  programs.push(running.program)
  return running
}

test('a node without a gateway does not open the key stores of one', async () => {
  const at = home('server_role = "api-publisher"\n[transport.passthru_https]\nlistener.key_store.file_name = "no.p12"')
  const program = launch(at, ['transport.passthru_https.listener.enable=true'])
  programs.push(program)
  await program.said.until(/^started$/m)
})

test('item 2: server.mode changes nothing, and check and start say why', async () => {
  const { program } = await startProgram(home('mode = "ha"'))
  programs.push(program)
  const warnings = program.events.filter(({ level }) => level === 'warn').map(({ msg }) => String(msg))
  assert.equal(warnings.length, 1, warnings.join('\n'))
  assert.match(
    warnings[0]!,
    /deployment\.toml:2: server\.mode: is accepted and not acted on \(nodes share state through /,
  )
  for (const mode of ['single', 'ha'] as const) {
    const server = { server_role: 'api-publisher', mode } as Parameters<typeof nodeComponents>[0]['server']
    assert.deepEqual(nodeComponents({ server }).warnings, [notBuilt('api-publisher', 'publisher portal')])
  }
})
