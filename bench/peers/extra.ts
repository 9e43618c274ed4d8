/**
 * Proxies that are no part of this project, named for one run in the environment:
 *
 *     BENCH_EXTRA='mine=exec ./my-proxy --port $PORT --backend $DOWNLOAD_PORT' npm run bench -- --peer mine,nginx
 *
 * Several are parted by line ends. The command is run by the shell with PORT, DOWNLOAD_PORT and UPLOAD_PORT set.
 */
import { PROXY_CORE, Program, pinned } from '../program.ts'
import type { Peer } from './peer.ts'

export function extraPeers(text: string): Peer[] {
  const lines = text.split('\n').map(line => line.trim())
  return lines
    .filter(line => line !== '')
    .map(line => {
      const equals = line.indexOf('=')
      if (equals < 1) throw new Error(`BENCH_EXTRA: expected name=command, found ${line}`)
      return extraPeer(line.slice(0, equals), line.slice(equals + 1))
    })
}

function extraPeer(name: string, command: string): Peer {
  return {
    name,
    abilities: ['requests'],
    missing: () => undefined,
    version: () => 'not of this project',
    async start({ port, downloadPort, uploadPort }) {
      const ports = { PORT: String(port), DOWNLOAD_PORT: String(downloadPort), UPLOAD_PORT: String(uploadPort) }
      const program = new Program(name, pinned(PROXY_CORE, ['sh', '-c', command]), ports)
      await program.accepting(port)
      return program
    },
  }
}
