/** `npm run bench`: measures the gateway beside nginx, HAProxy and npm proxies (method: bench/README.md). */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startBackends } from './backends/backends.ts'
import { createCertificate } from './certificate.ts'
import { environmentOf } from './environment.ts'
import { HELP, type Options, readOptions, UsageError } from './options.ts'
import { SLUICE_VARIANTS, sluiceBefore } from './peers/sluice-variants.ts'
import { extraPeers } from './peers/extra.ts'
import { HAPROXY } from './peers/haproxy.ts'
import { NGINX } from './peers/nginx.ts'
import { CEILING, NODE_FLOOR, NPM_PROXIES } from './peers/npm-proxy.ts'
import type { Peer } from './peers/peer.ts'
import { sluice } from './peers/sluice.ts'
import { LIMITED_SLUICE } from './peers/sluice-limits.ts'
import { MEDIATING_SLUICE } from './peers/sluice-mediation.ts'
import { SpeedProbe } from './probe.ts'
import { findExecutable, freePorts, pinSelf, raiseDescriptorLimit } from './program.ts'
import { profileText } from './report/profile.ts'
import { publish, record } from './report/publish.ts'
import { scenarioTable } from './report/markdown.ts'
import type { ScenarioResult, Environment } from './results.ts'
import { Session } from './session.ts'

/** Ports from the base port on: those of backends, and two for each peer. */
const PORTS = 80
/** A proxy has two connections for each of 10,000 tunnels. */
const DESCRIPTORS = 24_576

function choosePeers(options: Options): Peer[] {
  const all = [
    sluice(options.profileFolder),
    ...NGINX,
    ...HAPROXY,
    ...NPM_PROXIES,
    ...extraPeers(process.env.BENCH_EXTRA ?? ''),
    ...SLUICE_VARIANTS,
    ...LIMITED_SLUICE,
    ...MEDIATING_SLUICE,
    CEILING,
    NODE_FLOOR,
    ...(options.beforeFolder === undefined ? [] : [sluiceBefore(options.beforeFolder)]),
  ]
  if (options.peers === undefined) return all
  return options.peers.map(name => {
    const found = all.find(peer => peer.name === name)
    if (found === undefined)
      throw new UsageError(`--peer: there is no ${name}; there are ${all.map(p => p.name).join(', ')}`)
    return found
  })
}

function describeEnvironment(peers: readonly Peer[]): Environment {
  const versions = peers.filter(peer => peer.missing() === undefined && !isThisCheckout(peer))
  return environmentOf(Object.fromEntries(versions.map(peer => [peer.name, peer.version()])))
}

/** The version of a peer from this checkout is the commit. */
function isThisCheckout({ name }: Peer): boolean {
  return (
    name === 'sluice' || [...SLUICE_VARIANTS, ...LIMITED_SLUICE, ...MEDIATING_SLUICE].some(peer => peer.name === name)
  )
}

function reportMissing(peers: readonly Peer[]): void {
  const tools = ['nginx', 'haproxy', 'wrk', 'openssl'].filter(name => findExecutable(name) === undefined)
  if (tools.length > 0)
    console.error(`Not installed: ${tools.join(', ')}. For the whole comparison: apt-get install ${tools.join(' ')}`)
  for (const peer of peers) {
    const reason = peer.missing()
    if (reason !== undefined) console.error(`${peer.name} is left out: ${reason}`)
  }
}

async function measure(
  options: Options,
  peers: readonly Peer[],
  folder: string,
): Promise<Record<string, ScenarioResult>> {
  const certificate = createCertificate(`${folder}/certificate`)
  const backends = await startBackends(folder, options.basePort, certificate)
  const probe = new SpeedProbe()
  const environment = describeEnvironment(peers)
  const session = new Session({ options, folder, backends, peers, probe, environment, certificate })
  const scenarios: Record<string, ScenarioResult> = {}
  try {
    for (const name of options.scenarios) {
      const result = await session.run(name)
      scenarios[name] = result
      // An interruption keeps the scenarios so far.
      record({ schema: 1, scenarios }, options.jsonFile)
      if (options.write) publish({ schema: 1, scenarios: { [name]: result } })
      console.log(`${scenarioTable(name, result)}\n`)
    }
  } finally {
    await Promise.all([backends.stop(), probe.stop()])
  }
  return scenarios
}

async function main(): Promise<void> {
  const given = readOptions(process.argv.slice(2))
  if (given === undefined) return console.log(HELP)
  const options = { ...given, basePort: await freePorts(given.basePort, PORTS) }
  const peers = choosePeers(options)
  reportMissing(peers)
  if (!pinSelf()) console.error('Proxy and load share processors: taskset is missing, or there is one processor.')
  raiseDescriptorLimit(DESCRIPTORS)
  if (options.profileFolder !== undefined) {
    rmSync(options.profileFolder, { recursive: true, force: true })
    mkdirSync(options.profileFolder, { recursive: true })
  }
  const folder = mkdtempSync(join(tmpdir(), 'bench-'))
  try {
    const results = { schema: 1, scenarios: await measure(options, peers, folder) } as const
    console.log(`Recorded in ${record(results, options.jsonFile)}`)
    if (options.profileFolder !== undefined) console.log(`\n${profileText(options.profileFolder)}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

try {
  await main()
} catch (error) {
  console.error(error instanceof UsageError ? `Error: ${error.message}\n\n${HELP}` : error)
  process.exitCode = error instanceof UsageError ? 2 : 1
}
