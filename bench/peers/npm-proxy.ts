/** Proxies from npm: each is a server script in this folder, run by the same Node as the gateway. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { PROXY_CORE, Program, pinned } from '../program.ts'
import type { Capability } from '../scenarios.ts'
import type { Peer } from './peer.ts'

function installedVersion(packageName: string): string | undefined {
  try {
    const entry = createRequire(import.meta.url).resolve(packageName)
    const folder = entry.slice(
      0,
      entry.lastIndexOf(`node_modules/${packageName}/`) + `node_modules/${packageName}/`.length,
    )
    const manifest = JSON.parse(readFileSync(`${folder}package.json`, 'utf8')) as { version: string }
    return manifest.version
  } catch {
    return undefined
  }
}

function npmProxy(name: string, packageName: string, capabilities: readonly Capability[]): Peer {
  const script = fileURLToPath(new URL(`${name}-server.ts`, import.meta.url))
  return {
    name,
    capabilities,
    missing: () => (installedVersion(packageName) === undefined ? 'not installed: npm ci' : undefined),
    version: () => `${packageName} ${installedVersion(packageName)}`,
    async start({ port, downloadPort, uploadPort, echoPort, certificate }) {
      const ports = [port, downloadPort, uploadPort, echoPort].map(String)
      const files = certificate === undefined ? [] : [certificate.chainFile, certificate.keyFile]
      const command = [process.execPath, script, ...ports, ...files]
      const program = new Program(name, pinned(PROXY_CORE, command))
      await program.waitForPort(port)
      return program
    },
  }
}

/**
 * A bare proxy on the sockets and the parser of the gateway (`ceiling-server.ts`). It does the least that forwarding
 * takes, so the difference is the price of the gateway's work.
 */
export const CEILING: Peer = {
  ...npmProxy('ceiling', 'undici', ['requests', 'hot-path', 'limits', 'mediation-headers']),
  onlyWhenNamed: true,
  version: () => `ceiling on llhttp of undici ${installedVersion('undici')}`,
}

/** Answers from raw reads (`node-floor-server.ts`): no refusal of a Node program costs less. */
export const NODE_FLOOR: Peer = {
  name: 'node-floor',
  capabilities: ['refused'],
  missing: () => undefined,
  version: () => `node-floor on Node ${process.version}`,
  async start({ port }) {
    const script = fileURLToPath(new URL('node-floor-server.ts', import.meta.url))
    const program = new Program('node-floor', pinned(PROXY_CORE, [process.execPath, script, String(port)]))
    await program.waitForPort(port)
    return program
  },
}

export const NPM_PROXIES: readonly Peer[] = [
  npmProxy('http-proxy', 'http-proxy', ['requests', 'tls', 'tunnels']),
  npmProxy('fast-proxy', 'fast-proxy', ['requests']),
  npmProxy('reply-from', '@fastify/reply-from', ['requests']),
]
