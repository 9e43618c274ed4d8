/**
 * What `npm run package` makes, in a copy of the tree: the tarball, installed into an empty folder without a network,
 * and the container, each with a request through the program.
 */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { chownSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { LEVEL } from '../harness/socket-level.ts'
import { ScriptedBackend } from '../harness/peers.ts'
import { ask, freePort, makeHome, PLAIN_ONLY, Program } from '../harness/program.ts'

const run = promisify(execFile)
const ROOT = resolve(import.meta.dirname, '../..')
/** What a clone of the repository has, as far as the package needs it. */
const SHIPPED = ['package.json', 'package-lock.json', '.npmrc', 'README.md', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md']
const FOLDERS = ['src', 'scripts', 'conf']
const NOBODY = 65_534
const isRoot = process.getuid?.() === 0

const folder = mkdtempSync(join(tmpdir(), 'sluice-package-'))
chmodSync(folder, 0o755)
const clone = join(folder, 'clone')
const dist = join(folder, 'dist')
/** The environment of a machine whose own Node is the one that runs the tests. */
const env = {
  ...{ PATH: [dirname(process.execPath), ...systemPath()].join(delimiter), HOME: join(folder, 'user'), CI: 'true' },
  ...{ npm_config_cache: join(folder, 'cache'), npm_config_offline: 'true' },
}
const backend = await ScriptedBackend.listen(async peer => {
  await peer.untilRequest()
  peer.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello')
})
const programs: Program[] = []
let tarball = ''

/** Modules as operators write them. */
const TYPED: Readonly<Record<string, string>> = {
  'handler.mjs': `/** @type {import('sluice/handler').PhaseFunction} */
export const request = view => {
  view.setField('X-Region', view.field('accept-language') ?? '')
  view.setField('X-Status', view.status) // wrong
  return view.caller?.user !== 'nobody'
}
`,
  'audit.mjs': `/** @type {import('sluice/handler').PhaseFunction} */
export async function request(view) {
  await Promise.resolve()
  view.removeField('X-Secret')
}
/** @param {import('sluice/handler').ExchangeView} view */
export function end(view) {
  view.attributes = {} // wrong
}
`,
  'handler.ts': `import type { ExchangeView, HandlerModule } from 'sluice/handler'
export function response(view: ExchangeView): void {
  view.setField('X-Served-For', String(view.latencyMs))
  view.method = 'GET' // wrong
}
export default { synchronous: true, response } satisfies HandlerModule
`,
  'policy.mjs': `/** @type {import('sluice/class').Mediate} */
export function mediate(message, { properties, log }) {
  message.setField('X-Tag', String(properties.tag))
  log('loud', 'wrong')
}
`,
  'csv.mjs': `/** @type {import('sluice/format').BuildFunction} */
export function build(bytes, contentType) {
  return { text: contentType + bytes.length }
}
/** @type {import('sluice/format').FormatFunction} */
export function format(payload) {
  return 'json' in payload ? JSON.stringify(payload.json) : 7 // wrong
}
`,
  'script.mjs': `/** @param {import('sluice/script').ScriptMessage} mc */
export function mediate(mc) {
  mc.setProperty('X-Total', mc.getPayloadText().length, 'transport')
  mc.setPayload('wrong')
}
`,
  'notes.ts': `import type { MountedApi, MountedContext, MountedRequest } from 'sluice/mounted-api'
interface Tables {
  readonly notes: { id: string; text: string }
}
export async function open({ database }: MountedContext): Promise<MountedApi> {
  const { kysely, query } = database<Tables>()
  await query('select 1')
  return {
    async handle(request: MountedRequest) {
      const rows = await kysely.selectFrom('notes').select('text').execute()
      await kysely.selectFrom('wrong').execute()
      return { status: 200, body: rows.map(({ text }) => text).join() + request.path }
    },
  }
}
`,
}

/** Without the folders of this project, which npm puts before those of the system. */
function systemPath(): readonly string[] {
  return (process.env.PATH ?? '').split(delimiter).filter(path => !path.startsWith(ROOT))
}

/** The authority of a proxy between this machine and the registry. */
function authorities(): Record<string, string> {
  const { NODE_EXTRA_CA_CERTS: file } = process.env
  return file === undefined ? {} : { NODE_EXTRA_CA_CERTS: file }
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly optional?: boolean }>>
}

/**
 * The packages of production, which npm packs, the bundler, and the compiler of types. A link to them all would lose
 * what they depend on.
 */
function copyPackages(to: string): void {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lock
  const needed = Object.entries(packages).filter(
    ([path, { dev }]) => dev !== true || /\b(?:esbuild|typescript)\b/.test(path),
  )
  for (const [path, { optional }] of needed) {
    if (path === '') continue
    if (existsSync(join(ROOT, path))) cpSync(join(ROOT, path), join(to, path), { recursive: true })
    // Else npm packs without it, and asks a registry for it where the package is installed.
    else assert.ok(optional, `${path} is in package-lock.json and not installed: run npm ci`)
  }
}

/** A bundle, and the bundles that its static imports lead to. */
function loadedAtOnce(file: string, found: Set<string> = new Set()): ReadonlySet<string> {
  if (found.has(file)) return found
  found.add(file)
  const imports = readFileSync(file, 'utf8').matchAll(/\b(?:from|import)\s*"(\.[^"]+)"/g)
  for (const [, path] of imports) loadedAtOnce(join(dirname(file), path!), found)
  return found
}

function npm(cwd: string, ...words: string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
  return run('npm', words, { cwd, env })
}

before(async () => {
  mkdirSync(clone)
  for (const file of SHIPPED) cpSync(join(ROOT, file), join(clone, file))
  const isShipped = (path: string): boolean => path !== join(ROOT, 'conf', 'data')
  for (const name of FOLDERS) cpSync(join(ROOT, name), join(clone, name), { recursive: true, filter: isShipped })
  copyPackages(clone)
  // What a gateway that runs in the clone has written is not for others.
  mkdirSync(join(clone, 'conf', 'data'))
  writeFileSync(join(clone, 'conf', 'data', 'admin-password'), 'secret')
  await npm(clone, 'run', 'package', '--', dist)
  tarball = join(dist, readdirSync(dist).find(file => file.endsWith('.tgz'))!)
})

after(async () => {
  for (const program of programs) await program.kill()
  backend.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Empty before the tarball is installed into it, once: npm takes long to unpack the files. */
const prefix = join(folder, 'prefix')
const installed = join(prefix, 'lib', 'node_modules', 'sluice')
const command = join(prefix, 'bin', 'sluice')

/** `words`: the program with the command `start` and its options. */
async function startInstalled(words: readonly string[]): Promise<Program> {
  const sets = [
    ...PLAIN_ONLY,
    ...['transport.passthru_http.listener.parameters.port=0', 'management.health_port=0'],
    `transport.passthru_http.socket_level=${LEVEL === 'streams' ? 'streams' : 'auto'}`,
  ]
  const [command, ...rest] = words
  const program = new Program(command!, [...rest, ...sets.flatMap(set => ['--set', set])], env)
  programs.push(program)
  await program.said.until(/^ready$/m)
  return program
}

async function pass(program: Program): Promise<void> {
  const [, port] = await program.said.until(/^listening on http:\/\/\S*:(\d+)$/m)
  assert.match(await ask(Number(port), 'GET', '/t/1.0.0'), /^HTTP\/1\.1 200 OK\r\n[\s\S]*hello$/)
}

describe('the package', { concurrency: false }, () => {
  test('has built JavaScript, the documents of the home, and nothing that a gateway has written', async () => {
    const { stdout } = await run('tar', ['-tzf', tarball])
    const entries = stdout.split('\n').map(file => file.replace(/^package\//, ''))
    const files = entries.filter(file => !file.endsWith('/'))
    const own = files.filter(file => !file.startsWith('node_modules/') && file !== '')
    for (const file of ['src/launch.js', 'lib/reactor/reactor-entry.js', 'conf/apis/Sample/api.yaml', 'LICENSE']) {
      assert.ok(own.includes(file), file)
    }
    assert.deepEqual(
      own.filter(file => /(?<!\.d)\.ts$|^(?:src\/(?!launch\.js$)|test|bench|conf\/data)\//.test(file)),
      [],
    )
    const types = own.filter(file => file.endsWith('.d.ts'))
    assert.ok(types.every(file => file.startsWith('types/')) && types.length < 10, types.join())
    const native = files.filter(file => /\.node$|^node_modules\/@napi-rs\/./.test(file))
    assert.deepEqual(native, [], 'the package is the same on every platform')
    const notLoaded = files.filter(file => /\.(?:[cm]?ts|map)$/.test(file) && !own.includes(file))
    const unused = notLoaded.filter(file => !/^node_modules\/kysely\/dist\/esm\/.*\.d\.ts$/.test(file))
    assert.deepEqual(unused, [], 'no program loads types and source maps')
    const { bundleDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    assert.equal(
      bundleDependencies,
      true,
      'npm install writes the names that it knows; those that come later are missing',
    )
    // Half of them are commands and parts that load on first use; what a thread loads at once is in few files.
    assert.ok(own.length < 350, `${own.length} files`)
    await run('tar', ['-xzf', tarball, '-C', folder, 'package/lib'])
    const lib = join(folder, 'package', 'lib')
    for (const entry of ['reactor/reactor-entry.js', 'control/control-entry.js', 'worker/worker-entry.js']) {
      assert.ok(loadedAtOnce(join(lib, entry)).size <= 2, `${entry} loads several files at once`)
    }
    assert.ok(loadedAtOnce(join(lib, 'cli/run.js')).size <= 5, 'the program loads several files at once')
  })

  test('npm install --global gives the command sluice without a network; it passes a request', async () => {
    await npm(folder, 'install', '--global', '--prefix', prefix, tarball)
    const home = makeHome(backend.port, '', 'new')
    try {
      const program = await startInstalled([command, 'start', '--home', home.path])
      await pass(program)
      program.signal('SIGTERM')
      assert.deepEqual(await program.exited, { code: 0, signal: null })
      if (LEVEL === 'handles') {
        const level = JSON.parse(readFileSync(join(home.data, 'socket-level.json'), 'utf8')) as { passed: boolean }
        assert.ok(level.passed, 'the self-test runs in the package')
      }
    } finally {
      home.remove()
    }
  })

  test('has the types of modules of operators, for JavaScript and TypeScript', async () => {
    const project = join(folder, 'typed')
    mkdirSync(join(project, 'node_modules'), { recursive: true })
    symlinkSync(installed, join(project, 'node_modules', 'sluice'))
    symlinkSync(join(ROOT, 'node_modules', '@types'), join(project, 'node_modules', '@types'))
    for (const [file, text] of Object.entries(TYPED)) writeFileSync(join(project, file), text)
    const options = ['--noEmit', '--strict', '--allowJs', '--checkJs', '--module', 'nodenext', '--target', 'esnext']
    const compiler = [join(ROOT, 'node_modules/typescript/bin/tsc'), ...options, '--types', 'node']
    const { status, stdout } = spawnSync(process.execPath, [...compiler, ...Object.keys(TYPED)], { cwd: project })
    const places = [...stdout.toString().matchAll(/^(\S+?)\((\d+),/gm)].map(([, file, line]) => `${file}:${line}`)
    // Lines that say `wrong`, and no others, not even of the types themselves.
    const expected = Object.entries(TYPED).flatMap(([file, text]) =>
      text.split('\n').flatMap((line, at) => (line.includes('wrong') ? `${file}:${at + 1}` : [])),
    )
    assert.deepEqual(places.sort(), expected.sort(), stdout.toString())
    assert.notEqual(status, 0)
  })

  test('npx runs its commands, which find the files of the package', async () => {
    const cwd = join(folder, 'project')
    mkdirSync(cwd)
    const npx = (...words: string[]) =>
      run('npx', ['--no', 'sluice', ...words], { cwd, env: { ...env, npm_config_prefix: prefix } })
    await npx('init')
    assert.match((await npx('check')).stdout, /^valid: 0 errors, 0 warnings, 1 API\n$/)
    assert.match((await npx('help', 'operate')).stdout, /^# Operate a gateway\n/)
    const fault = join(installed, 'conf', 'synapse-configs', 'default', 'sequences', 'fault.xml')
    assert.ok(existsSync(fault))
  })

  test('start --sample runs the sample backend', async () => {
    const port = await freePort()
    const conf = join(folder, 'project', 'conf')
    const api = join(conf, 'apis', 'Sample', 'api.yaml')
    writeFileSync(api, readFileSync(api, 'utf8').replace(':8288', `:${port}`))
    const sets = [...PLAIN_ONLY.slice(0, 3), 'transport.passthru_http.listener.parameters.port=0']
    const words = ['start', '--sample', '--home', conf, ...sets.flatMap(set => ['--set', set])]
    const ports = ['--set', 'management.port=0', '--set', 'management.health_port=0']
    const program = new Program(command, [...words, ...ports], env)
    programs.push(program)
    const [, url] = await program.said.until(/^try: curl -i (http:\S+) -d 'hello'$/m)
    const token = spawnSync(command, ['token', 'Sample', '--home', conf], { env, encoding: 'utf8' }).stdout.trim()
    const headers = { authorization: `Bearer ${token}` }
    const response = await fetch(url!, { method: 'POST', body: 'hello', headers })
    assert.deepEqual([response.status, await response.text()], [200, 'hello'])
    await program.kill()
  })

  test('runs where its user can write neither its folder nor that of the home', async () => {
    const home = makeHome(backend.port, '', 'new')
    const user = join(folder, 'nobody')
    const data = join(folder, 'state')
    for (const path of [user, data]) {
      mkdirSync(path)
      if (isRoot) chownSync(path, NOBODY, NOBODY)
    }
    rmSync(join(installed, 'node_modules', '.cache'), { recursive: true, force: true })
    for (const path of [home.path, installed, join(installed, 'node_modules')]) chmodSync(path, 0o555)
    try {
      const bare = ['env', '--unset=NODE_COMPILE_CACHE', '--unset=XDG_CACHE_HOME']
      const drop = ['setpriv', '--reuid', String(NOBODY), '--regid', String(NOBODY), '--clear-groups']
      const launcher = [process.execPath, join(installed, 'src', 'launch.js')]
      const options = ['start', '--home', home.path, '--data', data]
      const program = await startInstalled([...bare, `HOME=${user}`, ...(isRoot ? drop : []), ...launcher, ...options])
      await pass(program)
      program.signal('SIGTERM')
      await program.exited
      assert.deepEqual(readdirSync(join(user, '.cache')), ['sluice'], 'the compile cache is in the home of the user')
    } finally {
      chmodSync(home.path, 0o755)
      home.remove()
    }
  })

  test('an older Node gets one sentence and exit code 1', () => {
    const older = `data:text/javascript,Object.defineProperty(process.versions, 'node', { value: '25.9.1' })`
    const launcher = join(installed, 'src', 'launch.js')
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', older, launcher, 'check'])
    assert.deepEqual([status, stdout.toString()], [1, ''])
    assert.match(stderr.toString(), /^Sluice needs Node 26 or newer, and this is v\S+ \(.*\)\.\n$/)
  })
})

describe('the container', {
  concurrency: false,
  skip: process.platform === 'linux' ? false : 'it is for Linux',
}, () => {
  const rootfs = join(dist, 'container', 'rootfs')
  const words = ['/usr/bin/sluice', 'start', '--home', '/home', '--data', '/data']

  test('its file system has all that the program needs', {
    skip: isRoot ? false : 'only root can chroot',
  }, async () => {
    const home = makeHome(backend.port, '', 'new')
    const [inside, data] = [join(rootfs, 'home'), join(rootfs, 'data')]
    cpSync(home.path, inside, { recursive: true })
    mkdirSync(data)
    chownSync(data, NOBODY, NOBODY)
    chmodSync(inside, 0o755)
    try {
      const program = await startInstalled(['chroot', `--userspec=${NOBODY}:${NOBODY}`, rootfs, ...words])
      await pass(program)
      program.signal('SIGTERM')
      assert.deepEqual(await program.exited, { code: 0, signal: null })
    } finally {
      home.remove()
      for (const path of [inside, data]) rmSync(path, { recursive: true, force: true })
    }
  })

  const hasBuilder = isRoot && spawnSync('buildah', ['--version']).status === 0
  const skip = hasBuilder ? false : 'buildah is not installed'
  test('a builder builds it from scratch without a network, and runs it', { skip }, async () => {
    const home = makeHome(backend.port, '', 'new')
    chmodSync(home.path, 0o755)
    const options = ['--storage-driver', 'vfs', '--root', join(folder, 'images'), '--runroot', join(folder, 'run')]
    // In a network of its own, which reaches nothing.
    const buildah = async (...of: string[]): Promise<string> =>
      (await run('unshare', ['--net', 'buildah', ...options, ...of], { cwd: join(dist, 'container') })).stdout.trim()
    try {
      await buildah('build', '--isolation', 'chroot', '--quiet', '--tag', 'sluice', '.')
      const container = await buildah('from', '--pull-never', 'sluice')
      const inside = ['run', '--isolation', 'chroot', '--volume', `${home.path}:/etc/sluice:ro`, container, '--']
      const started = ['/usr/bin/sluice', 'start', '--home', '/etc/sluice', '--data', '/var/lib/sluice']
      // Its processes end with the namespace.
      const namespace = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc']
      const program = await startInstalled([...namespace, 'buildah', ...options, ...inside, ...started])
      await pass(program)
      await program.kill()
      await buildah('rm', container)
    } finally {
      home.remove()
    }
  })
})

test('npm ci --omit=dev installs what the source needs under a Node 26 of the system', async () => {
  const source = join(folder, 'source')
  mkdirSync(source)
  for (const file of SHIPPED) cpSync(join(ROOT, file), join(source, file))
  for (const name of FOLDERS) cpSync(join(clone, name), join(source, name), { recursive: true })
  // The cache of the install that brought the packages of these tests; what it lacks comes from the registry.
  const cached = { PATH: env.PATH, HOME: process.env.HOME ?? '', npm_config_prefer_offline: 'true', ...authorities() }
  await run('npm', ['ci', '--omit=dev'], { cwd: source, env: cached })
  assert.ok(!existsSync(join(source, 'node_modules', 'node')))
  const { stdout } = await run('npm', ['run', '-s', 'sluice', '--', 'check'], { cwd: source, env })
  assert.match(stdout, /^valid: 0 errors/)
})
