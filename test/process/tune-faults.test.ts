/** `tune` where something goes wrong: signals, gateways that refuse every request, files that cannot be used. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { home, leave, sluice } from '../harness/operator.ts'
import { type Home, LAUNCHER, Program } from '../harness/program.ts'

const closing: (() => unknown)[] = [leave]
after(async () => {
  for (const close of closing) await close()
})

async function backendWith(listener: RequestListener): Promise<Home> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  closing.push(() => server.close().closeAllConnections())
  await once(server, 'listening')
  return home((server.address() as AddressInfo).port)
}

const SHORT = ['--seconds', '1', '--repeats', '2', '--clients', '2', '--only', 'buffer']
const ok = await backendWith((_, response) => response.end('ok'))

/** Ids of processes whose command line has this text. */
function running(text: string): readonly string[] {
  return readdirSync('/proc').filter(id => {
    try {
      return /^\d+$/.test(id) && readFileSync(`/proc/${id}/cmdline`, 'latin1').includes(text)
    } catch {
      return false
    }
  })
}

const LINUX = { skip: !existsSync('/proc/self/cmdline') }
const OLD = 'of an earlier run'
/** Keys of the listener that the load generator could not serve; the gateway of `tune` has them otherwise. */
const DEPLOYMENT = `[server]
offset = 5
[transport.passthru_http]
max_connections_per_client = 1
listener.parameters."bind-address" = "127.0.0.2"
listener.proxy_protocol.enable = true
listener.proxy_protocol.networks = ["10.0.0.0/8"]
`

/** State of the gateway of `tune` when the signal comes. */
const MOMENTS: readonly (readonly [NodeJS.Signals, RegExp | null])[] = [
  ['SIGINT', null],
  ['SIGTERM', /^ {2}0 %/],
]
for (const [signal, printed] of MOMENTS) {
  const when = printed === null ? 'while its gateway starts' : `after ${printed}`
  test(`${signal} ${when}: no process, no file is left, and nothing has changed`, LINUX, async t => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-signal-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const report = join(ok.path, `${signal}.html`)
    writeFileSync(report, OLD)
    writeFileSync(join(ok.path, 'deployment.toml'), DEPLOYMENT)
    const words = ['tune', '/t/', ...SHORT, '--home', ok.path, '--report', report, '--apply']
    const program = new Program(process.execPath, [LAUNCHER, ...words], { TMPDIR: folder })
    t.after(() => program.kill())
    if (printed !== null) await program.err.until(printed)
    else while (running(folder).length === 0) await new Promise(setImmediate)
    program.signal(signal)
    const { code } = await program.exited
    assert.deepEqual([code, program.out.text], [1, ''])
    assert.match(program.err.text, /(^|\n)interrupted: nothing has changed\n$/)
    assert.deepEqual([running(folder), readdirSync(folder)], [[], []])
    assert.equal(readFileSync(report, 'utf8'), OLD)
    assert.equal(readFileSync(join(ok.path, 'deployment.toml'), 'utf8'), DEPLOYMENT)
    assert.deepEqual(
      readdirSync(ok.path).filter(file => /part|json|toml\./.test(file)),
      [],
    )
  })
}

test('an API that needs a token: the option is named', async () => {
  const at = home()
  const file = join(at.path, 'apis', 'Test', 'api.yaml')
  writeFileSync(file, readFileSync(file, 'utf8').replace('"securityScheme":["none"],', ''))
  const { err } = await sluice(at, 'tune', '/t/', ...SHORT)
  assert.match(err, /\(401 \(900902\) x \d+\): give a token: --header 'Authorization: Bearer TOKEN'\n$/)
})

test('reports that cannot be written are refused before anything is measured, and leave no file', async () => {
  const at = home()
  mkdirSync(join(at.path, 'b.json'))
  for (const [report, reason] of [
    ['/nowhere/a.html', /cannot be written \(ENOENT\)/],
    [at.path, /is no file/],
    ['/dev/null', /is no file/],
    [join(at.path, 'b.html'), /b\.json is no file/],
    [join(at.path, 'c.json'), /--report names the page/],
  ] as const) {
    const { code, err } = await sluice(at, 'tune', '/t/', '--report', report)
    assert.equal(code, 2)
    assert.match(err, reason)
  }
  assert.deepEqual(
    readdirSync(at.path).filter(name => name.includes('.part')),
    [],
  )
})
