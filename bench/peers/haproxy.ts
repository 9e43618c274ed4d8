/**
 * HAProxy in HTTP mode: one thread, backend connections shared between requests, with its default buffers of 16 KiB
 * and, where bodies are large, once more with 64 KiB. Without `no strict-limits` it refuses to start unless twice as
 * many descriptors as client connections are allowed, which no scenario needs.
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import type { Certificate } from '../certificate.ts'
import { findExecutable, PROXY_CORE, Program, pinned } from '../program.ts'
import { type Peer, type Place, TWINS } from './peer.ts'

function configuration(place: Place, tuning: string): string {
  return `global
  nbthread 1
  maxconn 12000
  no strict-limits
  ${tuning}
defaults
  mode http
  option forwardfor
  http-reuse always
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout http-keep-alive 1h
  timeout tunnel 1h
${frontend(place)}`
}

function frontend(place: Place): string {
  const { port, certificate, backendCertificate, ability, downloadPort, uploadPort, echoPort, twinPorts } = place
  const secured = certificate === undefined ? '' : ` ssl crt ${certificate.bundleFile} ssl-min-ver TLSv1.2`
  const front = `frontend traffic\n  bind 127.0.0.1:${port} backlog 4096${secured}\n`
  if (ability === 'tunnels') return `${front}  default_backend echo\n${backend('echo', echoPort)}`
  if (ability === 'fail-over') return `${front}  default_backend twins\n${twins(twinPorts)}`
  const uploads = '  use_backend uploads if { path_beg /upload/ }\n  default_backend downloads\n'
  const downloads = backend('downloads', downloadPort, backendCertificate)
  return `${front}${uploads}${downloads}${backend('uploads', uploadPort)}`
}

function backend(name: string, port: number, certificate?: Certificate): string {
  const verified = certificate === undefined ? '' : ` ssl verify required ca-file ${certificate.chainFile}`
  return `backend ${name}\n  server one 127.0.0.1:${port}${verified}\n`
}

/** It learns of an illness from its own checks, four in the time for which the others leave a backend alone. */
function twins([first, second]: readonly [number, number]): string {
  const check = `check inter ${TWINS.suspendMs / 4}ms fall 1 rise 1`
  return `backend twins
  balance roundrobin
  option redispatch
  option httpchk GET /1k
  timeout connect ${TWINS.timeoutMs}ms
  timeout server ${TWINS.timeoutMs}ms
  server first 127.0.0.1:${first} ${check}
  server second 127.0.0.1:${second} ${check}
`
}

function version(): string {
  const said = spawnSync(findExecutable('haproxy')!, ['-v'], { encoding: 'utf8' }).stdout
  return said.split(' ').slice(0, 3).join(' ')
}

async function start(name: string, place: Place, tuning: string): Promise<Program> {
  const file = `${place.folder}/haproxy.cfg`
  writeFileSync(file, configuration(place, tuning))
  const program = new Program(name, pinned(PROXY_CORE, [findExecutable('haproxy')!, '-db', '-f', file]))
  await program.accepting(place.port)
  return program
}

function missing(): string | undefined {
  return findExecutable('haproxy') === undefined ? 'not installed: apt-get install haproxy' : undefined
}

const ABILITIES = ['requests', 'tls', 'tls-backend', 'handshakes', 'tunnels', 'fail-over'] as const

export const HAPROXY: readonly Peer[] = [
  { name: 'haproxy', abilities: ABILITIES, missing, version, start: place => start('haproxy', place, '') },
  {
    name: 'haproxy-64k',
    abilities: ['requests'],
    forBodiesOnly: true,
    missing,
    version,
    start: place => start('haproxy-64k', place, 'tune.bufsize 65536'),
  },
]
