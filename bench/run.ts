/**
 * `npm run bench`: measures the gateway beside nginx, HAProxy and the proxies from npm. This file only puts the parts
 * in order; bench/README.md says how and why it measures as it does.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { cpus, release, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { startBackend } from './backend.ts'
import { makeCertificate } from './certificate.ts'
import { HELP, type Options, readOptions, UsageError } from './options.ts'
import { CONTESTANTS, sluiceBefore } from './peers/contestants.ts'
import { extraPeers } from './peers/extra.ts'
import { HAPROXY } from './peers/haproxy.ts'
import { NGINX } from './peers/nginx.ts'
import { NPM_PROXIES } from './peers/npm-proxy.ts'
import type { Peer } from './peers/peer.ts'
import { sluice } from './peers/sluice.ts'
import { SpeedProbe } from './probe.ts'
import { canConnect, findExecutable, pinSelf, raiseDescriptorLimit } from './program.ts'
import { Progress } from './progress.ts'
import { profileText } from './report/profile.ts'
import { publish, record } from './report/publish.ts'
import { scenarioTable } from './report/markdown.ts'
import type { ScenarioResult, Surroundings } from './results.ts'
import { Session } from './session.ts'

const ROOT = resolve(import.meta.dirname, '..')

/** A proxy holds two connections for each of 10,000 tunnels. */
const DESCRIPTORS = 24_576

function choosePeers(options: Options): Peer[] {
  const all = [
    sluice(options.profileFolder),
    ...NGINX,
    ...HAPROXY,
    ...NPM_PROXIES,
    ...extraPeers(process.env.BENCH_EXTRA ?? ''),
    ...CONTESTANTS,
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

function surroundings(peers: readonly Peer[]): Surroundings {
  const versions = peers.filter(peer => peer.missing() === undefined && !isThisState(peer))
  return {
    processor: cpus()[0]?.model ?? 'unknown',
    processors: cpus().length,
    kernel: release(),
    node: process.version,
    commit: execFileSync('git', ['-C', ROOT, 'describe', '--always', '--dirty'], { encoding: 'utf8' }).trim(),
    versions: Object.fromEntries(versions.map(peer => [peer.name, peer.version()])),
  }
}

/** Its version is the commit. */
function isThisState({ name }: Peer): boolean {
  return name === 'sluice' || CONTESTANTS.some(peer => peer.name === name)
}

/** A port that somebody else holds would make a peer fail in a way that is hard to read. */
async function requireFreePorts(basePort: number): Promise<void> {
  for (let port = basePort; port < basePort + 40; port++) {
    if (await canConnect(port)) throw new UsageError(`port ${port} is taken: choose others with --base-port`)
  }
}

function sayWhatIsMissing(peers: readonly Peer[]): void {
  const tools = ['nginx', 'haproxy', 'wrk', 'openssl'].filter(name => findExecutable(name) === undefined)
  if (tools.length > 0)
    console.error(`Not installed: ${tools.join(', ')}. For the whole comparison: apt-get install ${tools.join(' ')}`)
  for (const peer of peers) {
    const why = peer.missing()
    if (why !== undefined) console.error(`${peer.name} is left out: ${why}`)
  }
}

async function measure(
  options: Options,
  peers: readonly Peer[],
  folder: string,
): Promise<Record<string, ScenarioResult>> {
  const certificate = makeCertificate(`${folder}/certificate`)
  const backend = await startBackend(folder, options.basePort, certificate)
  const probe = new SpeedProbe()
  const about = surroundings(peers)
  const session = new Session(options, folder, backend, peers, probe, new Progress(), about, certificate)
  const scenarios: Record<string, ScenarioResult> = {}
  try {
    for (const name of options.scenarios) {
      const result = await session.run(name)
      scenarios[name] = result
      console.log(`${scenarioTable(name, result)}\n`)
    }
  } finally {
    await Promise.all([backend.stop(), probe.stop()])
  }
  return scenarios
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2))
  if (options === undefined) return console.log(HELP)
  const peers = choosePeers(options)
  sayWhatIsMissing(peers)
  if (!pinSelf()) console.error('Not pinned (no taskset, or one processor): proxy and load share processors.')
  raiseDescriptorLimit(DESCRIPTORS)
  await requireFreePorts(options.basePort)
  if (options.profileFolder !== undefined) {
    rmSync(options.profileFolder, { recursive: true, force: true })
    mkdirSync(options.profileFolder, { recursive: true })
  }
  const folder = mkdtempSync(join(tmpdir(), 'bench-'))
  try {
    const results = { schema: 1, scenarios: await measure(options, peers, folder) } as const
    console.log(`Recorded in ${record(results, options.jsonFile)}`)
    if (options.write) publish(results)
    if (options.profileFolder !== undefined) console.log(`\n${profileText(options.profileFolder)}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

try {
  await main()
} catch (error) {
  console.error(error instanceof UsageError ? `${error.message}\n\n${HELP}` : error)
  process.exitCode = error instanceof UsageError ? 2 : 1
}
