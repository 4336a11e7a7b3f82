import { execFile, spawn } from 'node:child_process';
import { copyFile, mkdir, readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';

/** What goes into an image that is assembled out of this machine's files. */

export interface Instruction {
  readonly name: string;
  /** Everything behind the name, on one line. */
  readonly text: string;
}

/** The instructions of a Dockerfile's last stage, behind its FROM. */
export function lastStage(dockerfile: string): readonly Instruction[] {
  const lines = dockerfile
    .split('\n')
    .filter((line) => !/^\s*(#|$)/.test(line))
    .join('\n')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n');
  const from = lines.findLastIndex((line) => /^FROM\s/i.test(line));
  return lines.slice(from + 1).map((line) => {
    const [, name = '', text = ''] = /^(\S+)\s+(.*)$/.exec(line) ?? [];
    return { name: name.toUpperCase(), text };
  });
}

/** The files and folders of the build context that a stage copies. */
export function copiedSources(stage: readonly Instruction[]): readonly string[] {
  return stage
    .filter(({ name, text }) => name === 'COPY' && !text.startsWith('--from'))
    .flatMap(({ text }) => text.split(/\s+/).slice(0, -1));
}

/** What a stage tells the engine about the image, as an import takes it. */
export function imageChanges(stage: readonly Instruction[]): readonly string[] {
  return stage.filter(({ name }) => name !== 'COPY').map(({ name, text }) => `${name} ${text}`);
}

interface Locked {
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
}

/** The folders that `npm ci --omit=dev --omit=optional` installs, such as `node_modules/yaml`. */
export function productionPackages(lockfile: string): readonly string[] {
  const { packages } = JSON.parse(lockfile) as { packages: Readonly<Record<string, Locked>> };
  return Object.entries(packages)
    .filter(([path, { dev, optional, devOptional }]) => path !== '' && !dev && !optional && !devOptional)
    .map(([path]) => path)
    .sort();
}

/** Puts a program of this machine under a root, at `/usr/local/bin`, and each library at the place where it is here. */
export async function putProgram(root: string, program: string, name = basename(program)): Promise<void> {
  const real = await realpath(program);
  await put(real, join(root, 'usr/local/bin', name));
  for (const library of await librariesOf(real)) await put(library, join(root, library));
}

/** With its loader. A static program has none. */
async function librariesOf(program: string): Promise<readonly string[]> {
  const { stdout } = await promisify(execFile)('ldd', [program]).catch((error: { stdout?: string }) => ({
    stdout: error.stdout ?? '',
  }));
  if (stdout.includes('not found')) throw new Error(`a library of ${program} is missing: ${stdout}`);
  return [...stdout.matchAll(/(?:=> |^\s*)(\/\S+) \(0x/gm)].map(([, path]) => path!);
}

async function put(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  await copyFile(from, to);
}

/** An archive of a folder, owned by root and readable for all, the same for the same files. A failure is the stream's. */
export function archiveOf(root: string): Readable {
  const options = ['--sort=name', '--mtime=@0', '--numeric-owner', '--owner=0', '--group=0', '--mode=a+rX'];
  const tar = spawn('tar', ['-c', ...options, '-C', root, '.'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const fail = (error: Error): unknown => tar.stdout.destroy(error);
  tar.once('error', fail);
  tar.once('exit', (code) => code !== 0 && fail(new Error(`tar ended with code ${code}`)));
  return tar.stdout;
}

/** What the C library reads to know users and to look up names; a user without an entry is only a number. */
export const SYSTEM_FILES: Readonly<Record<string, string>> = {
  'etc/passwd': 'root:x:0:0:root:/root:/sbin/nologin\n',
  'etc/group': 'root:x:0:\n',
  'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
};

export const readText = (path: string): Promise<string> => readFile(path, 'utf8');
