/** The machine and the checkout of a run, for its record. */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpus, release } from 'node:os'
import { ROOT } from './peers/sluice.ts'
import type { Environment } from './results.ts'

/** `versions`: those of the programs beside the gateway, whose version is the commit. */
export function environmentOf(versions: Environment['versions']): Environment {
  return {
    processor: cpus()[0]?.model ?? 'unknown',
    processors: cpus().length,
    kernel: release(),
    node: process.version,
    commit: commitOf(ROOT),
    versions,
  }
}

/** Paths that publication writes; they change nothing that is measured. */
const PUBLISHED = [':!bench/results', ':!bench/README.md']

/** The commit of a checkout; `-dirty`: the files differ from it. */
function commitOf(root: string): string {
  const git = ['-C', root]
  const commit = execFileSync('git', [...git, 'describe', '--always'], { encoding: 'utf8' }).trim()
  const { status } = spawnSync('git', [...git, 'diff', '--quiet', 'HEAD', '--', '.', ...PUBLISHED])
  return status === 0 ? commit : `${commit}-dirty`
}
