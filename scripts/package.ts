/**
 * `npm run package`: makes what installations need, in `dist/` or the folder that is named:
 *
 *     sluice-VERSION.tgz   the package for npm
 *     sluice.service       the unit for systemd
 *     container/           the build context of a container, on Linux
 *
 * The package has no native code: optional packages, as the one by which piscina sets priorities, are left out. Of the
 * packages it has what a program loads: no source maps and no types, which are half of their files, but for the types
 * that those of the program's own interfaces use.
 * The container has the Node that runs this script, and the libraries that it loads on this machine.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, existsSync, globSync, mkdirSync, mkdtempSync } from 'node:fs'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '..')
const OUT = resolve(process.argv[2] ?? join(ROOT, 'dist'))
/** Owner of the process in the container; the Containerfile has it too. */
const USER = 65_532
/** Files of this project that npm packs unasked. */
const ALWAYS_PACKED = ['package.json', 'README.md', 'LICENSE']
/** Folders among the files of the package that are made for it, and the scripts that make them. */
const MADE: Readonly<Record<string, string>> = { 'lib/': 'bundle.ts', 'types/': 'declarations.ts' }
/** Types and source maps: half of the files of all packages, which no program loads. */
const NOT_LOADED = /\.(?:[cm]?ts|map)$/
/** Types that the declarations of `types/` use. */
const USED_TYPES = /\/kysely\/dist\/esm\/.*\.d\.ts$/

mkdirSync(OUT, { recursive: true })
const tarball = pack()
const made = [tarball, unit()]
if (process.platform === 'linux') made.push(container(tarball))
for (const path of made) process.stdout.write(`${relative(process.cwd(), path) || '.'}\n`)

/** Packs a copy of what the package has, because packages are changed there. */
function pack(): string {
  const staged = mkdtempSync(join(OUT, 'staged-'))
  const { files } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly files: readonly string[]
  }
  for (const file of [...ALWAYS_PACKED, ...files]) {
    const script = MADE[file]
    if (script === undefined) cpSync(join(ROOT, file), join(staged, file), { recursive: true })
    else execFileSync(process.execPath, [join(ROOT, 'scripts', script), join(staged, file)], { stdio: 'inherit' })
  }
  copyPackages(staged)
  leaveOutOptional(join(staged, 'node_modules'))
  // The scripts bundle sources, which the copy does not have.
  const words = ['pack', '--silent', '--ignore-scripts', '--pack-destination', OUT]
  const { status, stdout } = spawnSync('npm', words, {
    ...{ cwd: staged, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
  })
  rmSync(staged, { recursive: true })
  // npm has said why.
  if (status !== 0) process.exit(1)
  return join(OUT, stdout.trim().split('\n').at(-1)!)
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>
}

/** Copies the packages of production, of which npm packs those that the program needs. */
function copyPackages(staged: string): void {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lock
  for (const [path, { dev }] of Object.entries(packages)) {
    // Optional ones for other platforms are not there.
    if (path === '' || dev === true || !existsSync(join(ROOT, path))) continue
    const isNeeded = (file: string): boolean => !NOT_LOADED.test(file) || USED_TYPES.test(file)
    cpSync(join(ROOT, path), join(staged, path), { recursive: true, filter: isNeeded })
  }
}

interface Manifest {
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

/** Removes optional packages, which npm would bundle for the platform of this machine. */
function leaveOutOptional(modules: string): void {
  const manifests = globSync('{*,@*/*}/package.json', { cwd: modules }).map(path => join(modules, path))
  const read = manifests.map(path => ({ path, manifest: JSON.parse(readFileSync(path, 'utf8')) as Manifest }))
  for (const { path, manifest } of read) {
    const { optionalDependencies, ...rest } = manifest
    // Else npm asks a registry for them where the package is installed.
    if (optionalDependencies !== undefined) writeFileSync(path, JSON.stringify(rest, null, 2))
  }
  for (const name of read.flatMap(({ manifest }) => Object.keys(manifest.optionalDependencies ?? {}))) {
    rmSync(join(modules, name), { recursive: true, force: true })
  }
}

function unit(): string {
  const file = join(OUT, 'sluice.service')
  copyFileSync(join(ROOT, 'scripts', 'sluice.service'), file)
  return file
}

function container(packed: string): string {
  const context = join(OUT, 'container')
  const rootfs = join(context, 'rootfs')
  rmSync(context, { recursive: true, force: true })
  for (const folder of ['etc/sluice', 'opt/sluice', 'tmp', 'usr/bin']) {
    mkdirSync(join(rootfs, folder), { recursive: true })
  }
  chmodSync(join(rootfs, 'tmp'), 0o1777)
  mkdirSync(join(context, 'data', 'sluice'), { recursive: true, mode: 0o700 })
  copyFileSync(join(ROOT, 'scripts', 'Containerfile'), join(context, 'Containerfile'))
  execFileSync('tar', ['-xzf', packed, '-C', join(rootfs, 'opt', 'sluice'), '--strip-components=1'])
  for (const file of [process.execPath, ...libraries()]) {
    const target = file === process.execPath ? 'usr/bin/node' : file
    mkdirSync(join(rootfs, dirname(target)), { recursive: true })
    copyFileSync(file, join(rootfs, target))
  }
  writeFileSync(join(rootfs, 'etc', 'passwd'), `sluice:x:${USER}:${USER}::/var/lib/sluice:/sbin/nologin\n`)
  writeFileSync(join(rootfs, 'etc', 'group'), `sluice:x:${USER}:\n`)
  writeFileSync(join(rootfs, 'etc', 'sluice', 'deployment.toml'), '')
  const program = join(rootfs, 'usr', 'bin', 'sluice')
  writeFileSync(program, `#!/usr/bin/node\nimport('/opt/sluice/src/launch.js')\n`, { mode: 0o755 })
  return context
}

/** Returns the files that the dynamic linker loads for Node, with the linker itself; none for a static binary. */
function libraries(): readonly string[] {
  try {
    return execFileSync('ldd', [process.execPath], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).match(
      /\/[^\s()]+/g,
    )!
  } catch {
    return []
  }
}
