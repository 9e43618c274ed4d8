/**
 * HAProxy in HTTP mode: one thread, backend connections shared between requests, with its default buffers of 16 KiB
 * and, where bodies are large, once more with 64 KiB. Without `no strict-limits` it refuses to start unless twice as
 * many descriptors as client connections are allowed, which no scenario needs.
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { findExecutable, PROXY_CORE, Program, pinned } from '../program.ts'
import type { Peer, Place } from './peer.ts'

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
frontend traffic
  bind 127.0.0.1:${place.port} backlog 4096
  use_backend uploads if { path_beg /upload/ }
  default_backend downloads
backend downloads
  server one 127.0.0.1:${place.downloadPort}
backend uploads
  server one 127.0.0.1:${place.uploadPort}
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

export const HAPROXY: readonly Peer[] = [
  { name: 'haproxy', missing, version, start: place => start('haproxy', place, '') },
  {
    name: 'haproxy-64k',
    forBodiesOnly: true,
    missing,
    version,
    start: place => start('haproxy-64k', place, 'tune.bufsize 65536'),
  },
]
