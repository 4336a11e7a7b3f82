import { randomBytes } from 'node:crypto';
import { access, chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { archiveOf, putProgram, SYSTEM_FILES } from '../../scripts/image-files.ts';
import { dockerClient, type TinyImage } from './docker.ts';

const FOLDERS = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/local/sbin'];

async function pathOf(program: string): Promise<string> {
  for (const folder of FOLDERS) {
    const path = join(folder, program);
    const isThere = await access(path).then(
      () => true,
      () => false,
    );
    if (isThere) return path;
  }
  throw new Error(`${program} is not on this machine: scripts/services.sh installs it`);
}

/**
 * An image of programs that this machine has, with their libraries and nothing else, for where no registry is in reach;
 * removed when disposed. `folders` are made, and everybody may write there.
 */
export async function buildProgramImage(
  programs: readonly string[],
  { folders = [], entrypoint }: { readonly folders?: readonly string[]; readonly entrypoint?: string } = {},
): Promise<TinyImage> {
  const root = await mkdtemp(join(tmpdir(), 'program-image-'));
  try {
    for (const program of programs) await putProgram(root, await pathOf(program));
    for (const folder of ['etc', 'tmp', ...folders]) await mkdir(join(root, folder), { recursive: true });
    for (const folder of ['tmp', ...folders]) await chmod(join(root, folder), 0o1777);
    for (const [path, text] of Object.entries(SYSTEM_FILES)) await writeFile(join(root, path), text);
    const [repo, tag] = [`sandbox-broker-test/${programs[0]}`, randomBytes(6).toString('hex')];
    const changes = ['ENV PATH=/usr/local/bin', 'USER 10002:10002'];
    if (entrypoint !== undefined) changes.push(`ENTRYPOINT ["${entrypoint}"]`);
    const docker = dockerClient();
    const stream = await docker.importImage(archiveOf(root), { repo, tag, changes });
    for await (const _ of stream as unknown as AsyncIterable<Buffer>);
    const name = `${repo}:${tag}`;
    await docker.getImage(name).inspect();
    return {
      name,
      async [Symbol.asyncDispose]() {
        await docker.getImage(name).remove({ force: true });
      },
    };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}
