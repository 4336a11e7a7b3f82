import { createHash } from 'node:crypto';
import { chmod, cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { arch, tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import {
  archiveOf,
  copiedSources,
  imageChanges,
  lastStage,
  productionPackages,
  putProgram,
  readText,
  SYSTEM_FILES,
} from './image-files.ts';
import { finished, TaggedImage } from './tagged-image.ts';

/** Makes the broker's image over the engine's API. scripts/build-broker-image.sh is the command for people. */
const ROOT = join(import.meta.dirname, '..');
const IMAGE = 'sandbox-broker/broker';
const TAG = 'local';
const CONTENT = 'sandbox-broker.content';
const ENGINE_ARCH: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' };
/** What the base image of the Dockerfile says, and an imported file system does not. */
const BASE_CHANGES = ['ENV PATH=/usr/local/bin'];

const docker = new Docker();
const image = new TaggedImage(docker, `${IMAGE}:${TAG}`);
const say = (text: string): boolean => process.stderr.write(`broker image: ${text}\n`);

const dockerfile = await readText(join(ROOT, 'Dockerfile'));
const stage = lastStage(dockerfile);
const sources = copiedSources(stage);
const lockfile = await readText(join(ROOT, 'package-lock.json'));
const allPackages = new Set(Object.keys(JSON.parse(lockfile).packages));

/** The files behind a name of the context, below the root, in order. */
async function filesOf(name: string): Promise<string[]> {
  const below = await readdir(join(ROOT, name), { recursive: true, withFileTypes: true }).catch(() => null);
  if (below === null) return [name];
  return below
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
    .sort();
}

/** Known by everything that goes in. */
async function contentOf(how: string): Promise<string> {
  const hash = createHash('sha256').update(`${how} ${process.version} ${arch()}\n${dockerfile}\n${lockfile}\n`);
  const own = ['scripts/broker-image.ts', 'scripts/image-files.ts'];
  const names = (await Promise.all([...sources, ...own].map(filesOf))).flat();
  for (const name of names) hash.update(`${name}\n${await readText(join(ROOT, name))}\n`);
  return hash.digest('hex').slice(0, 16);
}

/** The root file system, in a folder. */
async function layOut(root: string): Promise<void> {
  await mkdir(join(root, 'app'), { recursive: true });
  for (const name of ['etc', 'proc', 'sys', 'dev']) await mkdir(join(root, name));
  await mkdir(join(root, 'tmp'));
  await chmod(join(root, 'tmp'), 0o1777);
  for (const [path, text] of Object.entries(SYSTEM_FILES)) await writeFile(join(root, path), text);
  await putProgram(root, process.execPath, 'node');
  for (const name of sources) await cp(join(ROOT, name), join(root, 'app', name), { recursive: true });
  const packages = productionPackages(lockfile);
  const wanted = new Set(packages);
  for (const path of packages.filter((each) => !each.includes('/node_modules/'))) {
    const isWanted = (from: string): boolean => {
      const name = from.slice(ROOT.length + 1);
      return !name.endsWith('/node_modules/.bin') && (wanted.has(name) || !allPackages.has(name));
    };
    await cp(join(ROOT, path), join(root, 'app', path), { recursive: true, filter: isWanted });
  }
}

async function assemble(content: string): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'broker-image-'));
  try {
    await layOut(root);
    const changes = [...BASE_CHANGES, ...imageChanges(stage), `LABEL ${CONTENT}=${content}`];
    await finished(docker, await docker.importImage(archiveOf(root), { repo: IMAGE, tag: TAG, changes }));
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

async function build(content: string): Promise<void> {
  const src = ['Dockerfile', 'package-lock.json', '.npmrc', ...sources];
  const options = { t: `${IMAGE}:${TAG}`, labels: { [CONTENT]: content }, rm: true, forcerm: true };
  await finished(docker, await docker.buildImage({ context: ROOT, src }, options));
}

async function main(argument: string | undefined): Promise<void> {
  if (argument !== undefined && argument !== '--dockerfile') throw new Error('usage: broker-image.ts [--dockerfile]');
  const { Architecture } = (await docker.info()) as { Architecture: string };
  const fitsHere = process.platform === 'linux' && ENGINE_ARCH[arch()] === Architecture;
  const how = argument === undefined && fitsHere ? 'assembled' : 'built';
  const content = await contentOf(how);
  if ((await image.inspect())?.Config.Labels?.[CONTENT] === content) {
    say('up to date');
    return;
  }
  say(how === 'assembled' ? "assembling it from this machine's files" : 'building it from the Dockerfile');
  const { Size: bytes } = await image.replace(() => (how === 'assembled' ? assemble(content) : build(content)));
  say(`${IMAGE}:${TAG} is ${how}, ${Math.round(bytes / 1e6)} MB`);
}

await main(process.argv[2]).catch((error: Error) => {
  process.stderr.write(`broker image: ${error.message}\n`);
  process.exitCode = 2;
});
