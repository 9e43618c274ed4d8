/**
 * Measures the dashboard on a gateway with 10,000 clients and 1,000 APIs under load: bytes per second to a viewer, time
 * per round in the page, gaps between frames, and processor time of the threads with and without a viewer, in turns.
 * The backend holds the requests of a tenth of the clients. Needs Chromium. 10,000 clients need 21,100 open files,
 * because the gateway keeps a backend connection free for each; where fewer are allowed there are fewer clients.
 *
 *     node bench/dashboard.ts [clients] [apis] [rounds]
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Browser, browserPath } from '../test/harness/browser.ts'
import { freePort, startProgram } from '../test/harness/program.ts'
import { connectionLimits, openFileLimit } from '../src/plan/descriptor-planning.ts'
import { writeHome } from './peers/sluice.ts'
import { raiseDescriptorLimit } from './program.ts'

const [wanted = 10_000, apis = 1000, rounds = 6] = process.argv.slice(2).map(Number)
const ROUND_MS = 8000
/** Requests per second, spread over all APIs and connections. */
const LOAD = 400
const LOAD_MS = 25
const PASSWORD = 'bench-Dashboard-1'
const TICKS_PER_SECOND = 100
const OPEN_FILES = 22_000
const HELD_SHARE = 0.1
/** Connections that are opened together. */
const AT_ONCE = 100
const HELD = '/held'

interface Frames {
  readonly rounds: readonly number[]
  readonly gaps: readonly number[]
}

/** Seconds of processor time that the main thread of the page has used. */
async function pageSeconds(): Promise<number> {
  const { metrics } = await browser.send('Performance.getMetrics')
  const named = metrics as readonly { readonly name: string; readonly value: number }[]
  return named.find(({ name }) => name === 'TaskDuration')!.value
}

raiseDescriptorLimit(OPEN_FILES)
const backend = createServer(({ url = '' }, response) => url.endsWith(HELD) || response.end('ok'))
await new Promise<void>(resolve => backend.listen(0, '127.0.0.1', () => resolve()))
const path = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
const { port: backendPort } = backend.address() as AddressInfo
writeHome(
  path,
  Array.from({ length: apis }, (_, at) => ({ name: `Api${at}`, context: `/api/${at}`, ports: [backendPort] })),
)
const home = { path, data: join(path, 'data'), remove: () => rmSync(path, { recursive: true, force: true }) }
const management = await freePort()
const sets = ['management.enable=true', `management.port=${management}`, `super_admin.password=${PASSWORD}`]
const words = ['transport.passthru_http.http.socket.timeout=600000', ...sets]
const gateway = await startProgram(home, words)
const pid = gateway.program.child.pid!

const sockets: Socket[] = []
const opening = (): Promise<void> => {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const socket = connect(gateway.port, '127.0.0.1', resolve).on('error', reject)
  socket.resume()
  sockets.push(socket)
  return promise
}
const { clients: most } = connectionLimits(openFileLimit(), 1)
const clients = most < 0 ? wanted : Math.min(wanted, most)
const held = Math.round(clients * HELD_SHARE)
while (sockets.length < clients) {
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, clients - sockets.length) }, opening))
}
const busy = sockets.slice(held)
for (const [at, socket] of sockets.slice(0, held).entries())
  socket.write(`GET /api/${at % apis}${HELD} HTTP/1.1\r\nHost: a\r\n\r\n`)

let sent = 0
const load = setInterval(() => {
  for (let each = 0; each < (LOAD * LOAD_MS) / 1000; each++) {
    const at = sent++
    busy[at % busy.length]!.write(`GET /api/${at % apis}/x HTTP/1.1\r\nHost: a\r\n\r\n`)
  }
}, LOAD_MS)

/** Seconds of processor time by kind of thread. */
function threadSeconds(): Readonly<Record<'reactors' | 'others', number>> {
  const seconds = { reactors: 0, others: 0 }
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const used = (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
    seconds[/\(reactor/.test(stat) ? 'reactors' : 'others'] += used
  }
  return seconds
}

const browser = await Browser.open(browserPath())
await browser.send('Performance.enable', { timeDomain: 'threadTicks' })
await browser.setScreen({ width: 1280, height: 900 })
const page = `https://localhost:${management}/dashboard`
await browser.goTo(page)
await browser.until(`document.querySelector('#password')`)
await browser.evaluate(`{
  document.querySelector('#username').value = 'admin'
  document.querySelector('#password').value = '${PASSWORD}'
  document.querySelector('form').submit()
}`)
await browser.until(`document.querySelector('#link')?.dataset.state === 'live'`)
await browser.goTo('about:blank')

const used = {
  with: [] as number[],
  without: [] as number[],
  withOthers: [] as number[],
  withoutOthers: [] as number[],
}
const bytes: number[] = []
const pages: number[] = []
const frames: Frames[] = []
for (let round = 0; round < rounds; round++) {
  for (const isWatched of round % 2 === 0 ? [true, false] : [false, true]) {
    await browser.goTo(isWatched ? page : 'about:blank')
    if (isWatched) {
      await browser.until(`document.querySelector('#link')?.dataset.state === 'live'`)
      await browser.evaluate(`{
        window.gaps = []
        let last = performance.now()
        const next = now => { gaps.push(now - last); last = now; requestAnimationFrame(next) }
        requestAnimationFrame(next)
      }`)
      await sleep(1500)
    }
    const pageBefore = await pageSeconds()
    const [before, received, begun] = [threadSeconds(), browser.receivedBytes, performance.now()]
    await sleep(ROUND_MS)
    const [after, seconds] = [threadSeconds(), (performance.now() - begun) / 1000]
    used[isWatched ? 'with' : 'without'].push((after.reactors - before.reactors) / seconds)
    used[isWatched ? 'withOthers' : 'withoutOthers'].push((after.others - before.others) / seconds)
    if (!isWatched) continue
    pages.push(((await pageSeconds()) - pageBefore) / seconds)
    bytes.push((browser.receivedBytes - received) / seconds)
    const told = await browser.evaluate(
      `({ gaps, rounds: performance.getEntriesByName('dashboard round').map(({ duration }) => duration) })`,
    )
    frames.push(told as Frames)
  }
}
clearInterval(load)

const median = (values: readonly number[]): number => quantile(values, 0.5)
function quantile(values: readonly number[], share: number): number {
  return values.toSorted((one, other) => one - other)[Math.min(values.length - 1, Math.floor(share * values.length))]!
}
const [pageRounds, gaps] = [frames.flatMap(it => it.rounds), frames.flatMap(it => it.gaps)]
const admitted = clients < wanted ? `${clients} of ${wanted}` : clients
const lines = [
  `${admitted} clients, ${held} held requests, ${apis} APIs, ${LOAD} requests/s`,
  `${rounds} rounds of ${ROUND_MS / 1000} s each`,
  `bytes per second to a viewer: ${Math.round(median(bytes))}`,
  `time of the page per round: ${median(pageRounds).toFixed(1)} ms, 95 % ${quantile(pageRounds, 0.95).toFixed(1)} ms`,
  `processor time of the page, drawing included: ${permille(pages)}`,
  `gap between frames: median ${median(gaps).toFixed(1)} ms, 95 % ${quantile(gaps, 0.95).toFixed(1)} ms`,
  `processor time of the reactors: ${permille(used.with)} with, ${permille(used.without)} without a viewer`,
  `processor time of other threads: ${permille(used.withOthers)} with, ${permille(used.withoutOthers)} without`,
]
function permille(values: readonly number[]): string {
  return `${(median(values) * 1000).toFixed(1)} ms/s`
}
process.stdout.write(`${lines.join('\n')}\n`)

await browser.close()
for (const socket of sockets) socket.destroy()
await gateway.program.kill()
home.remove()
backend.close()
