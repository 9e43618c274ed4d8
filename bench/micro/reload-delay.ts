/**
 * How long the primary is blocked while it reloads: `npx node bench/micro/reload-delay.ts`. A client asks the health
 * port, which the primary serves, every two milliseconds; the longest answer time is the longest block.
 */
import { connect } from 'node:net'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { largeDocument } from '../../test/harness/large-document.ts'
import { openProject } from '../../test/harness/open-project.ts'
import { makeHome, type RunningGateway, startProgram } from '../../test/harness/program.ts'
import { put, reload } from '../../test/harness/reloading.ts'

const PAUSE_MS = 2

/** Longest answer time of the health port until `work` is done. */
async function longestAnswerMs({ healthPort }: RunningGateway, work: () => Promise<void>): Promise<number> {
  let isDone = false
  const done = work().finally(() => {
    isDone = true
  })
  let longestMs = 0
  while (!isDone) {
    const startMs = performance.now()
    const socket = connect(healthPort, '127.0.0.1')
    socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    socket.resume()
    await once(socket, 'end')
    socket.destroy()
    longestMs = Math.max(longestMs, performance.now() - startMs)
    await sleep(PAUSE_MS)
  }
  await done
  return longestMs
}

async function measure(what: string, gateway: RunningGateway): Promise<void> {
  let tookMs = 0
  const longestMs = await longestAnswerMs(gateway, async () => {
    const startMs = performance.now()
    const { errors } = await reload(gateway)
    if (errors.length > 0) throw new Error(JSON.stringify(errors[0]))
    tookMs = performance.now() - startMs
  })
  console.log(`${what.padEnd(48)} ${tookMs.toFixed(0).padStart(6)} ms, blocked for at most ${longestMs.toFixed(0)} ms`)
}

function putProjects(gateway: Pick<RunningGateway, 'home'>, count: number, port: number): void {
  const endpointConfig = { endpoint_type: 'http', production_endpoints: { url: `http://127.0.0.1:${port}` } }
  for (let i = 0; i < count; i++) {
    put(gateway.home, `apis/Api${i}/api.yaml`, openProject({ name: `Api${i}`, context: `/api/${i}`, endpointConfig }))
  }
}

const home = makeHome(9)
const gateway = await startProgram(home)
try {
  await measure('nothing has changed', gateway)
  put(home, 'apis/large.json', largeDocument(1200))
  await measure('a document of 14 MB', gateway)
  await measure('nothing has changed', gateway)
  for (const count of [1000, 5000]) {
    putProjects(gateway, count, 9)
    await measure(`${count} projects`, gateway)
    putProjects(gateway, count, 10)
    await measure(`${count} projects, all of them changed`, gateway)
    await measure('nothing has changed', gateway)
  }
} finally {
  await gateway.program.kill()
  home.remove()
}
