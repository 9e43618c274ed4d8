/** Item 16: off a terminal every line on stdout and stderr is JSON or nothing, however a start goes. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { backend, home, leave, sluice } from '../harness/operator.ts'
import { ask, type Data, freePort, launch, LAUNCHER, PLAIN_ONLY, Program } from '../harness/program.ts'
import { put } from '../harness/reloading.ts'

after(leave)

/** Node options that run this code before the program, in its first thread and in the others. */
function before(code: string): Readonly<Record<string, string>> {
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` }
}

/** Whether the thread is the first one: `isMain` in the code of `before`. */
const IS_MAIN = `import { isMainThread as isMain } from 'node:worker_threads';`
const OLD_NODE = `Object.defineProperty(process.versions, 'node', { value: '25.9.1' })`
const STRAY = `${IS_MAIN} setTimeout(() => {
  console.log('stray words', isMain)
  process.emitWarning('a stray warning', { detail: 'in two\\nlines' })
}, 100)`
const CRASH = `${IS_MAIN} if (isMain) setTimeout(() => { throw new Error('a bug') }, 300)`
const REJECTION = `${IS_MAIN} if (isMain) setTimeout(() => Promise.reject(new Error('a bug')), 300)`

interface Start {
  readonly what: string
  readonly sets?: readonly string[]
  readonly words?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly toml?: string
  readonly data?: Data
  /** What one of the messages is; SIGTERM follows it where the start does not end by itself. */
  readonly said: RegExp
  readonly code: number
}

const taken = createServer().listen(0)
after(() => taken.close())
const { port } = taken.address() as { port: number }
const LISTENER = 'transport.passthru_http.listener.parameters.port'

const STARTS: readonly Start[] = [
  { what: 'a gateway that is ready', said: /^ready$/m, code: 0 },
  { what: 'the first password', data: 'new', sets: ['management.enable=true'], said: /^ready$/m, code: 0 },
  { what: 'an unknown option', words: ['--nonsense'], said: /--nonsense/, code: 2 },
  { what: 'an unknown key of --set', sets: ['server.ofset=1'], said: /server\.ofset/, code: 0 },
  { what: 'errors in the configuration', toml: '[server]\noffset = "x"\n', said: /server\.offset/, code: 78 },
  { what: 'a syntax error', toml: '[server\n', said: /deployment\.toml:1/, code: 78 },
  { what: 'a port that is taken', sets: [`${LISTENER}=${port}`], said: /is taken by another program/, code: 1 },
  { what: 'an older Node', env: before(OLD_NODE), said: /^Sluice needs Node 26 or newer, and this is v/, code: 1 },
  { what: 'words and warnings of modules', env: before(STRAY), said: /^stray words true$/m, code: 0 },
  { what: 'an exception that nobody catches', env: before(CRASH), said: /Error: a bug/, code: 1 },
  { what: 'a rejection that nobody catches', env: before(REJECTION), said: /Error: a bug/, code: 1 },
]

function assertLines(program: Program): void {
  for (const line of `${program.out.text}${program.err.text}`.split('\n').filter(text => text !== '')) {
    const { level, time, msg } = JSON.parse(line) as Readonly<Record<string, unknown>>
    assert.deepEqual([typeof level, typeof time, typeof msg], ['string', 'string', 'string'], line)
  }
}

for (const { what, sets = [], words = [], env = {}, toml = '', data, said, code } of STARTS) {
  test(`${what}: each line is JSON, and no password is among them`, async () => {
    const at = home(backend.port, data)
    put(at, 'deployment.toml', toml)
    const program = launch(at, sets, { SLUICE_TEST_HOOKS: '', ...env }, words)
    await program.said.until(said)
    if (code === 0) {
      await program.said.until(/^ready$/m)
      program.signal('SIGTERM')
    }
    assert.deepEqual(await program.exited, { code, signal: null }, program.err.text)
    assertLines(program)
    const file = join(at.data, 'admin-password')
    if (!existsSync(file)) return
    assert.equal(`${program.out.text}${program.err.text}`.includes(readFileSync(file, 'utf8').trim()), false)
  })
}

async function untilReady(healthPort: number): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    const response = await ask(healthPort, 'GET', '/readyz').catch(() => '')
    if (response.startsWith('HTTP/1.1 200')) return
    await setTimeout(100)
  }
  assert.fail('not ready')
}

/** What becomes of the log that the program writes to its standard error. */
const LOST: readonly (readonly [what: string, redirection: string])[] = [
  ['on a full disk', '2>/dev/full'],
  ['that nobody reads any more', ''],
]

for (const [what, redirection] of LOST) {
  test(`with a log ${what} traffic, commands and SIGTERM go on`, async () => {
    const at = home(backend.port)
    const health = await freePort()
    const listener = await freePort()
    const sets = [...PLAIN_ONLY, `management.health_port=${health}`, `${LISTENER}=${listener}`]
    const words = [LAUNCHER, 'start', '--home', at.path, ...sets.flatMap(it => ['--set', it])]
    const program = new Program('sh', ['-c', `exec "$0" "$@" ${redirection}`, process.execPath, ...words])
    try {
      program.child.stderr!.destroy()
      await untilReady(health)
      for (let i = 0; i < 3; i++) assert.deepEqual(await sluice(at, 'reload'), { code: 0, out: 'applied\n', err: '' })
      assert.match(await ask(listener, 'GET', '/t/1.0.0'), /^HTTP\/1\.1 200/)
      program.signal('SIGTERM')
      assert.deepEqual(await program.exited, { code: 0, signal: null })
    } finally {
      await program.kill()
    }
  })
}
