/**
 * nginx as a reverse proxy: one worker, upstream keep-alive, bodies never written to disk. Once with its default
 * buffers and once, where bodies are large, with buffers as large as the gateway's, which suits it better.
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { findExecutable, PROXY_CORE, Program, pinned } from '../program.ts'
import type { Peer, Place } from './peer.ts'

const LARGE_BUFFERS = `proxy_buffers 16 64k; proxy_buffer_size 16k; proxy_busy_buffers_size 256k;
  client_body_buffer_size 64k;`
const KEEP = 'keepalive 128; keepalive_requests 1000000000; keepalive_timeout 3600s;'

function configuration(place: Place, buffers: string): string {
  const { folder } = place
  return `daemon off; pid ${folder}/nginx.pid; error_log stderr crit; worker_processes 1; worker_rlimit_nofile 20000;
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 16384; }
http {
  access_log off; tcp_nodelay on; gzip off;
  keepalive_timeout 3600s; keepalive_requests 1000000000; client_max_body_size 0;
  client_body_temp_path ${folder}; proxy_temp_path ${folder};
  fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_set_header Host $host;
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
  proxy_request_buffering off;
  proxy_max_temp_file_size 0;
  ${buffers}
  upstream downloads { server 127.0.0.1:${place.downloadPort}; ${KEEP} }
  upstream uploads { server 127.0.0.1:${place.uploadPort}; ${KEEP} }
  server {
    listen 127.0.0.1:${place.port} backlog=4096;
    location /bench/ { proxy_pass http://downloads; }
    location /upload/ { proxy_pass http://uploads; }
  }
}
`
}

function version(): string {
  return spawnSync(findExecutable('nginx')!, ['-v'], { encoding: 'utf8' }).stderr.replace('nginx version:', '').trim()
}

async function start(name: string, place: Place, buffers: string): Promise<Program> {
  const file = `${place.folder}/nginx.conf`
  writeFileSync(file, configuration(place, buffers))
  const command = [findExecutable('nginx')!, '-e', 'stderr', '-p', place.folder, '-c', file]
  const program = new Program(name, pinned(PROXY_CORE, command))
  await program.accepting(place.port)
  return program
}

function missing(): string | undefined {
  return findExecutable('nginx') === undefined ? 'not installed: apt-get install nginx' : undefined
}

export const NGINX: readonly Peer[] = [
  { name: 'nginx', missing, version, start: place => start('nginx', place, '') },
  {
    name: 'nginx-64k',
    forBodiesOnly: true,
    missing,
    version,
    start: place => start('nginx-64k', place, LARGE_BUFFERS),
  },
]
