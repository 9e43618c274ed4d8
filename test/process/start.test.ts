/** `start` of the real program: its output, its health port, and refused starts. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { LEVEL } from '../harness/socket-level.ts'
import { ScriptedBackend } from '../harness/peers.ts'
import { putApi } from '../harness/reloading.ts'
import { ask, type Data, freePort, type Home, launch, makeHome, PLAIN_ONLY, Program } from '../harness/program.ts'
import { startProgram } from '../harness/program.ts'

const backend = await ScriptedBackend.listen(peer => {
  void peer
    .untilText('\r\n\r\n')
    .then(() => peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok'))
})
const homes: Home[] = []
const programs: Program[] = []
after(async () => {
  for (const program of programs) await program.kill()
  for (const home of homes) home.remove()
  backend.close()
})

function home(deployment = '', data: Data = 'kept'): Home {
  const made = makeHome(backend.port, deployment, data)
  homes.push(made)
  return made
}

async function start(...args: Parameters<typeof startProgram>): ReturnType<typeof startProgram> {
  const running = await startProgram(...args)
  programs.push(running.program)
  return running
}

function tryStart(...args: Parameters<typeof launch>): Program {
  const program = launch(...args)
  programs.push(program)
  return program
}

test('start prints a line per listener, then ready, and serves', async () => {
  const at = home('', 'new')
  const { program, port, healthPort } = await start(at)
  const lines = program.said.text.slice(program.said.text.indexOf('listening on')).trimEnd().split('\n')
  const password = 'password of admin: in the file admin-password (generated now and kept in the data folder)'
  assert.deepEqual(lines, [
    `listening on http://*:${port}`,
    `1 reactor, ${LEVEL}, 1 API`,
    `health on http://127.0.0.1:${healthPort}/healthz`,
    password,
    'ready',
  ])
  for (const path of ['/t/it', '/t/1.0.0/it'])
    assert.match(await ask(port, 'GET', path), /^HTTP\/1\.1 200 OK\r\n.*ok$/s)
  assert.match(await ask(port, 'GET', '/other'), /^HTTP\/1\.1 404 Not Found\r\n/)

  const HEALTH: readonly (readonly [string, string, string, string | RegExp])[] = [
    ['GET', '/healthz', '200 OK', 'ok\n'],
    ['GET', '/readyz', '200 OK', 'ready\n'],
    ['HEAD', '/readyz', '200 OK', ''],
    ['GET', '/healthz?verbose', '200 OK', 'ok\n'],
    ['GET', '/nothing', '404 Not Found', /healthz/],
    ['POST', '/healthz', '405 Method Not Allowed', /GET/],
    ['POST', '/test/kill', '405 Method Not Allowed', /GET/],
    ['GET', '/metrics', '200 OK', /^sluice_requests_total 3$/m],
    ['GET', '/metrics', '200 OK', /^sluice_responses_total\{class="2xx",status="200"\} 2$/m],
    ['GET', '/metrics', '200 OK', /^sluice_responses_total\{class="4xx",status="404"\} 1$/m],
  ]
  for (const [method, path, status, expected] of HEALTH) {
    const [head, body] = (await ask(healthPort, method, path)).split('\r\n\r\n')
    assert.ok(head!.startsWith(`HTTP/1.1 ${status}\r\n`), `${method} ${path}: ${head}`)
    if (typeof expected === 'string') assert.equal(body, expected)
    else assert.match(body!, expected)
  }

  // The health port is on loopback by default.
  assert.ok(program.said.text.includes('health on http://127.0.0.1:'))
  program.signal('SIGHUP')
  program.signal('SIGTERM')
  assert.deepEqual(await program.exited, { code: 0, signal: null })
  // The access log is off by default, and SIGHUP does not change that.
  assert.ok(!existsSync(join(at.data, 'access.log')))
  assert.equal(program.out.text, '')
})

test('node src/main.ts starts the gateway too', async () => {
  const program = new Program(process.execPath, [
    'src/main.ts',
    'start',
    '--home',
    home().path,
    ...[...PLAIN_ONLY, 'transport.passthru_http.listener.parameters.port=0', 'management.health_port=0'].flatMap(
      set => ['--set', set],
    ),
  ])
  programs.push(program)
  await program.said.until(/^ready$/m)
  program.signal('SIGINT')
  assert.deepEqual(await program.exited, { code: 0, signal: null })
})

for (const [what, key, sets] of [
  [
    'listener, with an offset',
    'transport.passthru_http.listener.parameters.port',
    (port: number) => [`listener.parameters.port=${port - 5}`],
  ],
  ['health port', 'management.health_port', (port: number) => [`health_port=${port}`]],
] as const) {
  test(`a port of the ${what} that is taken is an error that names it`, async t => {
    const taken = createServer().listen(0)
    await once(taken, 'listening')
    t.after(() => taken.close())
    const { port } = taken.address() as { port: number }
    const section = key.slice(0, key.startsWith('management') ? 'management'.length : 'transport.passthru_http'.length)
    const offset = what.endsWith('offset') ? ['server.offset=5'] : []
    const program = tryStart(home(), [...sets(port).map(set => `${section}.${set}`), ...offset])
    assert.deepEqual(await program.exited, { code: 1, signal: null })
    assert.match(program.err.text, new RegExp(`\\b${port} is taken by another program; set ${key}, or server.offset`))
    assert.equal(program.out.text, '')
  })
}

test('a gateway without any listener logs a warning', async () => {
  const program = tryStart(home(), ['transport.passthru_http.listener.enable=false'])
  await program.said.until(/^ready$/m)
  await program.err.until(/"msg":"no listener is enabled: no client can reach this gateway"/)
})

test('an access log that cannot be written is an error that names key and path', async () => {
  const own = home()
  const program = tryStart(own, ['access_log.target=file', 'access_log.path=nowhere/access.log'])
  assert.deepEqual(await program.exited, { code: 1, signal: null })
  const path = join(own.data, 'nowhere', 'access.log')
  assert.equal(program.said.text, `${path} cannot be written (ENOENT); set access_log.path\n`)
  assert.equal(program.out.text, '')
})

test('a second gateway on the same port or data folder is refused', async () => {
  const port = await freePort()
  const shared = [`transport.passthru_http.listener.parameters.port=${port}`, 'transport.passthru_http.reactors=2']
  const own = home()
  const first = await start(own, shared)
  const second = tryStart(home(), shared)
  assert.deepEqual(await second.exited, { code: 1, signal: null })
  assert.match(second.err.text, new RegExp(`\\b${port} is taken`))
  const third = tryStart(own, [])
  assert.deepEqual(await third.exited, { code: 1, signal: null })
  assert.match(third.err.text, new RegExp(`another gateway \\(process ${first.program.child.pid}\\) uses .*data`))
  assert.match(await ask(first.port, 'GET', '/t/'), /^HTTP\/1\.1 200 OK/)

  // The lock of a killed gateway does not refuse the start.
  await first.program.kill()
  assert.match(readFileSync(join(own.data, 'lock'), 'latin1'), new RegExp(`^${first.program.child.pid} `))
  await start(own)
})

const BAD = `
[transport.passthru_http]
io_buffer_size = "large"
"http.socket.timeout" = -5

[access_log]
target = "disk"
`
test('a configuration with errors exits with 78 and names every error with its place', async () => {
  const store = '[transport.passthru_https]\nlistener.key_store.file_name = "none.p12"\n'
  const proxy = '[[transport.http.proxy_profile]]\ntarget_hosts = "a["\nproxy_host = "p"\nproxy_port = 1\n'
  const own = home(`${BAD}${store}${proxy}`)
  mkdirSync(join(own.path, 'apis', 'Broken'))
  writeFileSync(join(own.path, 'apis', 'Broken', 'api.yaml'), 'type: api\ndata: [')
  const program = tryStart(own, ['transport.passthru_https.listener.enable=true', 'server.offset=many'])
  assert.deepEqual(await program.exited, { code: 78, signal: null })
  assert.equal(program.out.text, '')
  const faults = [
    /deployment\.toml:3\b.*io_buffer_size/,
    /deployment\.toml:4\b.*http\.socket\.timeout/,
    /deployment\.toml:7\b.*access_log\.target/,
    /server\.offset/,
    /none\.p12: transport\.passthru_https\.listener\.key_store\.file_name/,
    /deployment\.toml:11: transport\.http\.proxy_profile\[0\]\.target_hosts/,
    /Broken\/api\.yaml/,
  ]
  for (const fault of faults) assert.match(program.err.text, fault)
  assert.equal(program.err.text.trimEnd().split('\n').length, faults.length, program.err.text)
})

test('a syntax error is the only error reported', async () => {
  const own = home('[server]\noffset = ')
  mkdirSync(join(own.path, 'apis', 'Broken'))
  writeFileSync(join(own.path, 'apis', 'Broken', 'api.yaml'), 'type: api\ndata: [')
  const program = tryStart(own, [])
  assert.deepEqual(await program.exited, { code: 78, signal: null })
  assert.match(program.err.text, /^\S*deployment\.toml:2:\d+: not valid TOML: server\.offset: .*\n$/)
})

test('an API with errors is logged as JSON, and the other APIs are served', async () => {
  const own = home()
  mkdirSync(join(own.path, 'apis', 'Broken'))
  writeFileSync(join(own.path, 'apis', 'Broken', 'api.yaml'), 'type: api\ndata: [')
  putApi(own, 'Dead', 'dead', `http://127.0.0.1:${await freePort()}`)
  const { program, port } = await start(own)
  assert.match(await ask(port, 'GET', '/t/'), /^HTTP\/1\.1 200 OK/)
  assert.match(program.err.text, /Broken\/api\.yaml/)
  const answer = await ask(port, 'GET', '/dead/1.0.0/it?apikey=secret')
  assert.match(answer, /^HTTP\/1\.1 502 Bad Gateway\r\n/)
  const correlationId = /\r\nactivityid: (\S+)\r\n/.exec(answer)![1]!
  await program.err.until(/"msg":"backend failed"/)
  const [line, ...others] = program.events.filter(({ msg }) => msg === 'backend failed')
  assert.equal(others.length, 0)
  assert.equal(line?.level, 'warn')
  assert.equal(line.ERROR_CODE, 101503)
  assert.equal(line.INTERNAL_STATE, 0)
  assert.equal(line.CAUSE_OF_ERROR, 'ECONNREFUSED')
  assert.equal(line.HTTP_METHOD, 'GET')
  assert.equal(line.CORRELATION_ID, correlationId)
  assert.equal(line.CLIENT_ADDRESS, '127.0.0.1')
  assert.match(String(line.HTTP_URL), /^\/dead\/1\.0\.0\/it\?apikey=/)
  assert.ok(!program.err.text.includes('secret'))
})
