/** Reloads by command and by SIGHUP: which keys apply, which take a restart, and what is refused. */
import assert from 'node:assert/strict'
import { cpSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { takeResponse } from '../harness/responses.ts'
import { UnreliableBackend } from '../harness/unreliable-backend.ts'
import { dial, home, leave, sluice, start, startTwo } from '../harness/operator.ts'
import { eventually, type Peer } from '../harness/peers.ts'
import { ask, freePort, type RunningGateway } from '../harness/program.ts'
import { put, putApi, reload, removeApi } from '../harness/reloading.ts'

after(leave)

const HTTP = '[transport.passthru_http]\n'
const NONE = { added: [], changed: [], removed: [], kept: [] }

async function patient(t: TestContext, name: string): Promise<string> {
  const backend = await UnreliableBackend.start(name)
  t.after(() => backend.stop())
  return `http://127.0.0.1:${backend.port}`
}

/** Status and body of one request on an open connection. */
async function on(client: Peer, path: string, body = ''): Promise<readonly [number, string]> {
  const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`
  client.send(`${body === '' ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nHost: a\r\n${length}\r\n${body}`)
  const answer = await takeResponse(client)
  return [answer.status, answer.body]
}

let last: RunningGateway | undefined

/** The gateway of the test before with fresh files and log; a new one where keys take a restart. */
async function started(deployment = ''): Promise<RunningGateway> {
  if (last !== undefined) {
    rmSync(join(last.home.path, 'apis'), { recursive: true, force: true })
    cpSync(join(home().path, 'apis'), join(last.home.path, 'apis'), { recursive: true })
    put(last.home, 'deployment.toml', deployment)
    const { outcome, restart } = await reload(last)
    last.program.err.text = ''
    if (outcome === 'applied' && restart.length === 0) return last
  }
  const at = home()
  put(at, 'deployment.toml', deployment)
  last = await start(at)
  return last
}

test('a live key applies to open connections, and is reported with both values', async t => {
  const gateway = await started()
  putApi(gateway.home, 'Test', 't', await patient(t, 'a'))
  await reload(gateway)
  const client = await dial(gateway)
  assert.deepEqual(await on(client, '/t/', 'hello'), [200, 'a'])
  put(gateway.home, 'deployment.toml', `${HTTP}"body.max_bytes" = 3\n`)
  const answer = await reload(gateway)
  assert.equal(answer.outcome, 'applied')
  assert.deepEqual(answer.apis, NONE)
  assert.deepEqual(
    answer.keys.map(({ key, running, wanted, where }) => [key, running, wanted, where.replace(/.*\//, '')]),
    [['transport.passthru_http.body.max_bytes', -1, 3, 'deployment.toml:2']],
  )
  assert.deepEqual(await on(client, '/t/', 'abc'), [200, 'a'])
  const [status, body] = await on(client, '/t/', 'hello')
  assert.equal(status, 400)
  assert.match(body, /"code":102511,/)
  const again = await reload(gateway)
  assert.deepEqual([again.keys, again.restart, again.errors], [[], [], []])
})

test('a key that takes a restart keeps its running value, and each reload reports both values', async () => {
  const gateway = await started(`${HTTP}io_buffer_size = 8192\n`)
  put(gateway.home, 'deployment.toml', `${HTTP}io_buffer_size = 9000\n[access_log]\ntarget = "file"\n`)
  for (let i = 0; i < 2; i++) {
    const { outcome, keys, restart } = await reload(gateway)
    assert.deepEqual([outcome, keys], ['applied', []])
    assert.deepEqual(
      restart.map(({ key, running, wanted }) => [key, running, wanted]),
      [
        ['transport.passthru_http.io_buffer_size', 8192, 9000],
        ['access_log.target', 'off', 'file'],
      ],
    )
  }
  const { code, out } = await sluice(gateway.home, 'reload')
  assert.equal(code, 0)
  assert.match(out, /^restart +transport\.passthru_http\.io_buffer_size: 8192 -> 9000 \(.*:2\): needs a restart$/m)
  assert.match(out, /^applied, except for 2 keys that need a restart\n$/m)
  const warned = gateway.program.events.filter(({ KEY }) => KEY === 'access_log.target')
  assert.deepEqual([warned[0]?.level, warned[0]?.RUNNING, warned[0]?.WANTED], ['warn', '"off"', '"file"'])
  put(gateway.home, 'deployment.toml', `${HTTP}io_buffer_size = 8192\n`)
  assert.deepEqual((await reload(gateway)).restart, [])
})

test('a changed secret is reported without its value', async () => {
  const gateway = await started('[super_admin]\n[transport.passthru_https]\n"sender.key_store.password" = "geheim1"\n')
  put(gateway.home, 'deployment.toml', '[transport.passthru_https]\n"sender.key_store.password" = "geheim2"\n')
  const { code, out } = await sluice(gateway.home, 'reload', '--json')
  assert.equal(code, 0)
  const [change] = JSON.parse(out).keys
  assert.deepEqual([change.running, change.wanted], ['(set)', '(set)'])
  assert.doesNotMatch(out + gateway.program.err.text, /geheim/)
})

test('a configuration with errors is refused as a whole, with all of them', async t => {
  const [a, b] = [await patient(t, 'a'), await patient(t, 'b')]
  const gateway = await started(`${HTTP}"body.max_bytes" = 3\n`)
  putApi(gateway.home, 'Test', 't', a)
  await reload(gateway)
  putApi(gateway.home, 'Test', 't', b)
  put(gateway.home, 'deployment.toml', `${HTTP}"body.max_bytes" = 9\nio_buffer_size = "x"\n[access_log]\ntarget = 1\n`)
  const { code, out } = await sluice(gateway.home, 'reload')
  assert.equal(code, 78)
  assert.match(out, /^error +\S*deployment\.toml:3: transport\.passthru_http\.io_buffer_size = "x"/m)
  assert.match(out, /^error +\S*deployment\.toml:5: access_log\.target = 1/m)
  assert.match(out, /^refused: nothing has changed\n$/m)
  const client = await dial(gateway)
  assert.deepEqual(await on(client, '/t/', 'abc'), [200, 'a'])
  assert.equal((await on(client, '/t/', 'hello'))[0], 400)
  assert.ok(gateway.program.events.some(({ msg }) => msg === 'reload refused; nothing has changed'))
})

for (const [what, write] of [
  ['half written', gateway => put(gateway.home, 'deployment.toml', '[transport.passthru_http]\nio_buffer_size = ')],
  ['removed', gateway => renameSync(join(gateway.home.path, 'deployment.toml'), join(gateway.home.path, 'other.toml'))],
  ['removed with the whole home', gateway => rmSync(join(gateway.home.path, 'apis'), { recursive: true })],
] as const satisfies readonly (readonly [string, (gateway: RunningGateway) => void])[]) {
  test(`a file that is ${what} is one error, and nothing changes`, async t => {
    const gateway = await started()
    putApi(gateway.home, 'Test', 't', await patient(t, 'a'))
    await reload(gateway)
    write(gateway)
    rmSync(join(gateway.home.path, what === 'half written' ? 'none' : 'deployment.toml'), { force: true })
    const { outcome, errors } = await reload(gateway)
    assert.deepEqual([outcome, errors.length], ['refused', 1])
    assert.deepEqual(await on(await dial(gateway), '/t/'), [200, 'a'])
  })
}

test('a live key that breaks a rule beside a key that takes a restart is refused', async () => {
  const gateway = await started()
  put(gateway.home, 'deployment.toml', `${HTTP}"header.max_bytes" = 12000\n"target.max_bytes" = 11000\n`)
  assert.equal((await reload(gateway)).outcome, 'applied')
  put(gateway.home, 'deployment.toml', `${HTTP}io_buffer_size = 40000\n"pipeline.max_bytes" = 30000\n`)
  const { outcome, restart, errors } = await reload(gateway)
  assert.deepEqual([outcome, errors.length], ['refused', 1])
  assert.deepEqual(
    restart.map(({ key, running, wanted }) => [key, running, wanted]),
    [['transport.passthru_http.io_buffer_size', 16_384, 40_000]],
  )
  const [{ key, given, hint } = assert.fail()] = errors
  assert.deepEqual([key, given], ['transport.passthru_http.pipeline.max_bytes', '30000'])
  assert.match(hint, /takes a restart: beside it runs transport\.passthru_http\.io_buffer_size = 16384, and 40000 /)
})

test('unknown keys are warnings, and the other keys apply', async () => {
  const gateway = await started()
  put(gateway.home, 'deployment.toml', '[server]\nofset = 1\n')
  const { outcome, warnings } = await reload(gateway)
  assert.deepEqual([outcome, warnings.map(({ key }) => key)], ['applied', ['server.ofset']])
  await reload(gateway)
  assert.equal(gateway.program.events.filter(({ msg }) => /server\.ofset/.test(String(msg))).length, 1)
})

test('APIs are added, changed and removed; one whose project has errors keeps its active version', async t => {
  const [a, b] = [await patient(t, 'a'), await patient(t, 'b')]
  const gateway = await started()
  const at = gateway.home
  for (const name of ['one', 'two', 'three']) putApi(at, name, name, a)
  removeApi(at, 'Test')
  const first = await reload(gateway)
  assert.deepEqual(first.apis, { ...NONE, added: ['one/1.0.0', 'three/1.0.0', 'two/1.0.0'], removed: ['t/1.0.0'] })
  const client = await dial(gateway)
  assert.deepEqual(await on(client, '/two/'), [200, 'a'])

  putApi(at, 'two', 'two', b)
  putApi(at, 'four', 'four', b)
  removeApi(at, 'three')
  put(at, 'apis/one/api.yaml', 'type: api\ndata: [')
  const second = await reload(gateway)
  assert.equal(second.outcome, 'applied')
  assert.deepEqual(second.apis, {
    added: ['four/1.0.0'],
    changed: ['two/1.0.0'],
    removed: ['three/1.0.0'],
    kept: ['one/1.0.0'],
  })
  assert.match(second.errors[0]!.where, /apis\/one\/api\.yaml/)
  for (const [path, status, body] of [
    ['/one/', 200, 'a'],
    ['/two/1.0.0/', 200, 'b'],
    ['/four/', 200, 'b'],
    ['/three/', 404, null],
    ['/t/', 404, null],
  ] as const) {
    const [got, text] = await on(client, path)
    assert.equal(got, status, path)
    if (body !== null) assert.equal(text, body, path)
  }
  const { code, out } = await sluice(at, 'reload')
  assert.equal(code, 1)
  assert.match(out, /^kept +one\/1\.0\.0: the deployed version stays, because of the errors above\napplied\n$/m)
  // A restart has no active version to keep.
  assert.equal((await sluice(at, 'check')).code, 78)
  removeApi(at, 'one')
  assert.deepEqual((await reload(gateway)).apis, { ...NONE, removed: ['one/1.0.0'] })
})

test('of two APIs that clash the active one stays', async t => {
  const [a, b] = [await patient(t, 'a'), await patient(t, 'b')]
  const gateway = await started()
  putApi(gateway.home, 'B', 'x', b)
  await reload(gateway)
  putApi(gateway.home, 'A', 'x', a)
  const { apis, errors } = await reload(gateway)
  assert.deepEqual([apis, errors.length], [NONE, 1])
  assert.deepEqual(await on(await dial(gateway), '/x/'), [200, 'b'])
  // The new API is deployed once the other one is gone.
  removeApi(gateway.home, 'B')
  assert.deepEqual((await reload(gateway)).apis.changed, ['x/1.0.0'])
  assert.deepEqual(await on(await dial(gateway), '/x/'), [200, 'a'])
})

test('endpoints keep their state while they are unchanged', async t => {
  const [a, b] = [await patient(t, 'a'), await patient(t, 'b')]
  const gateway = await started()
  const at = gateway.home
  putApi(at, 'Test', 't', a, b)
  await reload(gateway)
  const states = async (...words: string[]): Promise<readonly string[]> => {
    const { out } = await sluice(at, 'endpoints', ...words, '--json')
    return JSON.parse(out).map(({ name, state }: Record<string, string>) => `${name} ${state}`)
  }
  assert.deepEqual(await states('off', 't/1.0.0:1'), ['t/1.0.0:1 OFF', 't/1.0.0:2 ACTIVE'])
  putApi(at, 'Other', 'other', a)
  await reload(gateway)
  assert.deepEqual(await states(), ['other/1.0.0 ACTIVE', 't/1.0.0:1 OFF', 't/1.0.0:2 ACTIVE'])
  // Other endpoints beside it, in another order.
  putApi(at, 'Test', 't', b, `${a}/x`, a)
  await reload(gateway)
  assert.deepEqual(await states(), ['other/1.0.0 ACTIVE', 't/1.0.0:1 ACTIVE', 't/1.0.0:2 ACTIVE', 't/1.0.0:3 OFF'])
  putApi(at, 'Test', 't', b)
  await reload(gateway)
  putApi(at, 'Test', 't', a, b)
  await reload(gateway)
  assert.deepEqual(await states(), ['other/1.0.0 ACTIVE', 't/1.0.0:1 ACTIVE', 't/1.0.0:2 ACTIVE'])
  assert.deepEqual(await on(await dial(gateway), '/t/'), [200, 'a'])
})

test('switching a WebSocket sender on or off deploys or removes the APIs that need it', async () => {
  const gateway = await started()
  putApi(gateway.home, 'Ws', 'ws', 'ws://127.0.0.1:9')
  const without = await reload(gateway)
  assert.deepEqual([without.outcome, without.apis, without.errors.length], ['applied', NONE, 1])
  put(gateway.home, 'deployment.toml', '[transport.ws]\nsender.enable = true\n')
  assert.deepEqual((await reload(gateway)).apis.added, ['ws/1.0.0'])
  put(gateway.home, 'deployment.toml', '')
  assert.deepEqual((await reload(gateway)).apis.removed, ['ws/1.0.0'])
})

test('a forward proxy with errors refuses a reload, and requests go on without it', async t => {
  const gateway = await started()
  putApi(gateway.home, 'Test', 't', await patient(t, 'a'))
  await reload(gateway)
  put(gateway.home, 'deployment.toml', `${HTTP}"sender.proxyProfiles" = "<profile><hosts>a</hosts></profile>"\n`)
  const { outcome, errors } = await reload(gateway)
  assert.equal(outcome, 'refused')
  assert.match(errors[0]!.expected, /is not known|is missing/)
  assert.deepEqual(await on(await dial(gateway), '/t/'), [200, 'a'])
})

test('a new forward proxy gets the requests of open connections', async t => {
  const [a, proxy] = [await patient(t, 'a'), await patient(t, 'proxy')]
  const gateway = await started()
  putApi(gateway.home, 'Test', 't', a)
  await reload(gateway)
  const client = await dial(gateway)
  assert.deepEqual(await on(client, '/t/'), [200, 'a'])
  const { port } = new URL(proxy)
  const keys = `"sender.http.proxyHost" = "127.0.0.1"\n"sender.http.proxyPort" = ${port}\n`
  put(gateway.home, 'deployment.toml', HTTP + keys)
  assert.deepEqual((await reload(gateway)).apis.changed, ['t/1.0.0'])
  assert.deepEqual(await on(client, '/t/'), [200, 'proxy'])
})

test('SIGHUP reloads, and the outcome is in the log', async t => {
  const gateway = await started()
  putApi(gateway.home, 'New', 'new', await patient(t, 'a'))
  put(gateway.home, 'deployment.toml', `${HTTP}"body.max_bytes" = 3\nreactors = 1\n`)
  gateway.program.signal('SIGHUP')
  await gateway.program.err.until(/"APIS_ADDED":[^\n]*\n/)
  const line = gateway.program.events.find(({ msg, APIS_ADDED }) => msg === 'reloaded' && APIS_ADDED !== undefined)!
  assert.equal(line.APIS_ADDED, 'new/1.0.0')
  assert.equal(line.KEYS_CHANGED, 'transport.passthru_http.body.max_bytes: -1 -> 3')
  assert.equal(line.KEYS_FOR_RESTART, 'transport.passthru_http.reactors')
  assert.deepEqual(await on(await dial(gateway), '/new/'), [200, 'a'])
})

test('logging.level is live, in the primary and in the reactors', async () => {
  const gateway = await started()
  const at = gateway.home
  for (const name of ['quiet', 'loud']) putApi(at, name, name, `http://127.0.0.1:${await freePort()}`)
  put(at, 'deployment.toml', '[logging]\nlevel = "error"\n')
  await reload(gateway)
  await ask(gateway.port, 'GET', '/quiet/')
  put(at, 'deployment.toml', '[logging]\nlevel = "info"\n')
  await reload(gateway)
  await ask(gateway.port, 'GET', '/loud/')
  await gateway.program.err.until(/"msg":"backend failed"/)
  const failures = gateway.program.events.filter(({ msg }) => msg === 'backend failed')
  assert.deepEqual(
    failures.map(({ HTTP_URL }) => HTTP_URL),
    ['/loud/'],
  )
})

test('a gateway that ends reloads nothing', async t => {
  const backend = await UnreliableBackend.start('a')
  t.after(() => backend.stop())
  backend.behaviour = 'hangs'
  const gateway = await start(home(backend.port))
  const client = await dial(gateway)
  client.send('GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('the request', () => backend.held > 0)
  gateway.program.signal('SIGTERM')
  await gateway.program.err.until(/finishing what is in flight/)
  const { code, err } = await sluice(gateway.home, 'reload')
  assert.equal(code, 1)
  assert.match(err, /the node is ending: it reloads nothing/)
  backend.respondToHeld()
  assert.equal((await gateway.program.exited).code, 0)
})

test('reload without a running gateway exits with 1', async () => {
  const { code, err } = await sluice(home(), 'reload')
  assert.equal(code, 1)
  assert.match(err, /no gateway runs with the data folder/)
  assert.equal((await sluice(home(), 'reload', 'x')).code, 2)
})

test('a reactor that is replaced during a reload, killed or hung, has applied it', async t => {
  const gateway = await startTwo({ SLUICE_TEST_HOOKS: '1' })
  for (const hook of ['kill', 'hang']) {
    putApi(gateway.home, hook, hook, await patient(t, 'a'))
    await ask(gateway.healthPort, 'POST', `/test/${hook}`)
    gateway.program.err.text = ''
    const { outcome, failures } = await reload(gateway)
    assert.deepEqual([outcome, failures], ['applied', []])
    await gateway.program.err.until(/"msg":"reactor replaced"/)
    const reactors = new Set<string>()
    for (let i = 0; i < 40 || (reactors.size < 2 && i < 400); i++) {
      const client = await dial(gateway)
      client.send(`GET /${hook}/ HTTP/1.1\r\nHost: a\r\n\r\n`)
      const { status, fields } = await takeResponse(client)
      assert.equal(status, 200)
      reactors.add(fields.get('activityid')![0]!.slice(0, 12))
      client.destroy()
    }
    assert.equal(reactors.size, 2)
  }
})
