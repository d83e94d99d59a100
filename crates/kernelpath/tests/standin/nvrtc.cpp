// libnvrtc: the same text goes to g++ instead of a GPU's compiler. What it makes is kept beside the stand-in's libraries.
#pragma GCC visibility push(default)
#include <cuda.h>
#include <nvrtc.h>
#pragma GCC visibility pop

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "report.hpp"

using namespace standin;

namespace {
struct Program {
    std::string source, name, log, image;
    bool compiled = false;
};
std::set<const void *> &programs = *new std::set<const void *>;

Program &program_of(const void *handle) {
    if (!programs.count(handle)) fault("%p is no program, or one that was destroyed", handle);
    return *(Program *)handle;
}

// The architectures of NVRTC 12.9 and 13.
const std::vector<int> &architectures() {
    static const std::vector<int> all = CUDA_VERSION < 13000
        ? std::vector<int>{50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 120, 121}
        : std::vector<int>{75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
    return all;
}

std::string read(const std::string &path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}
void write(const std::string &path, const std::string &text) { std::ofstream(path) << text; }

// The folder of the stand-in's libraries and of its headers.
std::string home() {
    Dl_info info;
    if (!dladdr((void *)&nvrtcCompileProgram, &info)) fault("the stand-in cannot find itself");
    // A test may link to some of the libraries from a folder of its own.
    char *path = realpath(info.dli_fname, nullptr);
    if (!path) fault("the stand-in cannot find %s", info.dli_fname);
    std::string folder(path, strrchr(path, '/'));
    free(path);
    return folder;
}

// What NVRTC accepts of options, and what of them g++ has to know.
bool read_options(Program &program, int count, const char *const *options, int &architecture, std::string &flags) {
    std::vector<std::string> all(options, options + count);
    for (size_t i = 0; i < all.size(); ++i) {
        std::string option = all[i], value;
        static const std::set<std::string> takes_next = {"--gpu-architecture", "-arch", "-D", "-I", "--define-macro", "--include-path", "--std", "-std"};
        size_t equal = option.find('=');
        if (takes_next.count(option)) {
            if (++i == all.size()) return (program.log = "error: " + option + " lacks its value", false);
            value = all[i];
        } else if (option.compare(0, 2, "-D") == 0 || option.compare(0, 2, "-I") == 0) {
            value = option.substr(2);
            option.resize(2);
        } else if (equal != std::string::npos) {
            value = option.substr(equal + 1);
            option.resize(equal);
        }
        static const std::set<std::string> no_matter = {"--fmad", "-fmad", "--ftz", "-ftz", "--prec-sqrt", "--prec-div", "--std", "-std", "--restrict", "-restrict",
                                                        "--generate-line-info", "-lineinfo", "--default-device", "-default-device", "--maxrregcount", "-maxrregcount"};
        if (option == "--gpu-architecture" || option == "-arch") {
            static const std::regex form("(compute|sm)_(\\d+)[af]?");
            std::smatch match;
            if (!std::regex_match(value, match, form)) return (program.log = "error: invalid value for --gpu-architecture: " + value, false);
            architecture = std::stoi(match[2]);
            bool known = false;
            for (int a : architectures()) known |= a == architecture;
            if (!known) return (program.log = "error: invalid value for --gpu-architecture: " + value, false);
        } else if (option == "-D" || option == "--define-macro") flags += " '-D" + value + "'";
        else if (option == "-I" || option == "--include-path") flags += " '-I" + value + "'";
        else if (option == "--use_fast_math" || option == "-use_fast_math") fault("fast-math makes exp and 1/x inexact");
        else if (!no_matter.count(option)) return (program.log = "error: unrecognized option " + all[i], false);
    }
    return true;
}

bool shell(const std::string &command) { return system(command.c_str()) == 0; }

// The kernels of a text and what stands in their __launch_bounds__.
std::map<std::string, std::string> kernels_of(const std::string &preprocessed) {
    std::map<std::string, std::string> kernels;
    static const std::regex entry("extern\\s+\"C\"((?:\\s|STANDIN_KERNEL|void|STANDIN_BOUNDS\\(([^)]*)\\))+)\\s+(\\w+)\\s*\\(");
    for (std::sregex_iterator i(preprocessed.begin(), preprocessed.end(), entry), end; i != end; ++i)
        if ((*i)[1].str().find("STANDIN_KERNEL") != std::string::npos) kernels[(*i)[3]] = (*i)[2];
    return kernels;
}

bool build(Program &program, const std::string &base, const std::string &flags) {
    std::string all = " -std=c++17 -O2 -fPIC -w -fno-exceptions -fvisibility=hidden -ftrivial-auto-var-init=pattern -I" + home() + "/include" + flags;
    std::string text = "#include \"text.hpp\"\n#line 1 \"" + program.name + "\"\n" + program.source + "\n";
    write(base + ".cpp", text);
    if (!shell("g++ -E -P -DSTANDIN_NAMES" + all + " " + base + ".cpp -o " + base + ".i 2>" + base + ".log")) return false;
    auto kernels = kernels_of(read(base + ".i"));
    for (auto &kernel : kernels)
        text += "extern \"C\" __attribute__((used, visibility(\"default\"))) const standin::Entry standin_entry_" + kernel.first +
                " = standin::Kernel<" + kernel.first + ">::entry(standin::bounds(" + kernel.second + "));\n";
    write(base + ".cpp", text);
    const char *checks = " -fsanitize=bounds,signed-integer-overflow,shift,integer-divide-by-zero -fno-sanitize-recover=all";
    return shell("g++" + all + checks + " -c " + base + ".cpp -o " + base + ".o 2>" + base + ".log") &&
           shell("g++ -shared " + base + ".o -o " + base + ".so 2>>" + base + ".log");
}
}  // namespace

nvrtcResult nvrtcVersion(int *major, int *minor) {
    CALL;
    *major = CUDA_VERSION / 1000;
    *minor = CUDA_VERSION % 1000 / 10;
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetNumSupportedArchs(int *count) {
    CALL;
    *count = (int)architectures().size();
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetSupportedArchs(int *all) {
    CALL;
    for (int architecture : architectures()) *all++ = architecture;
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCreateProgram(nvrtcProgram *handle, const char *source, const char *name, int headers, const char *const *, const char *const *) {
    CALL;
    if (headers) fault("headers in memory are not known to the stand-in");
    Program *program = new Program{source, name ? name : "default_program", "", ""};
    programs.insert(program);
    *handle = (nvrtcProgram)program;
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram *handle) {
    CALL;
    Program *program = &program_of(*handle);
    programs.erase(program);
    delete program;
    *handle = nullptr;
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram handle, int count, const char *const *options) {
    CALL;
    Program &program = program_of(handle);
    int architecture = CUDA_VERSION < 13000 ? 52 : 75;
    std::string flags;
    if (!read_options(program, count, options, architecture, flags)) return NVRTC_ERROR_INVALID_OPTION;
    // NVRTC has no headers of the system; g++ would find them.
    std::smatch include;
    if (std::regex_search(program.source, include, std::regex("(^|\n)[ \t]*#[ \t]*include[^\n]*"))) {
        program.log = "error: could not open source file: " + include.str();
        return NVRTC_ERROR_COMPILATION;
    }
    std::string folder = home() + "/modules";
    mkdir(folder.c_str(), 0777);
    // One text, one name: a second process finds what the first has built.
    std::string headers = read(home() + "/include/text.hpp") + read(home() + "/include/abi.hpp");
    char key[40];
    snprintf(key, sizeof key, "/%016zx%08zx", std::hash<std::string>()(program.source + '\0' + program.name + '\0' + flags), std::hash<std::string>()(headers) & 0xffffffff);
    std::string final = folder + key + ".so", base = folder + key + "-" + std::to_string(getpid());
    if (access(final.c_str(), R_OK)) {
        bool built = build(program, base, flags);
        program.log = read(base + ".log");
        if (built && rename((base + ".so").c_str(), final.c_str())) fault("cannot write %s", final.c_str());
        for (const char *kind : {".cpp", ".i", ".o", ".so", ".log"}) unlink((base + kind).c_str());
        if (!built) return NVRTC_ERROR_COMPILATION;
    }
    program.image = "//stand-in\n//" + std::to_string(architecture) + "\n//" + final + "\n";
    program.compiled = true;
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetPTXSize(nvrtcProgram handle, size_t *size) {
    CALL;
    Program &program = program_of(handle);
    if (!program.compiled) REFUSE(NVRTC_ERROR_INVALID_PROGRAM, "the program was not compiled");
    *size = program.image.size() + 1;
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetPTX(nvrtcProgram handle, char *text) {
    CALL;
    Program &program = program_of(handle);
    if (!program.compiled) REFUSE(NVRTC_ERROR_INVALID_PROGRAM, "the program was not compiled");
    memcpy(text, program.image.c_str(), program.image.size() + 1);
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram handle, size_t *size) {
    CALL;
    *size = program_of(handle).log.size() + 1;
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram handle, char *text) {
    CALL;
    const std::string &log = program_of(handle).log;
    memcpy(text, log.c_str(), log.size() + 1);
    return NVRTC_SUCCESS;
}
const char *nvrtcGetErrorString(nvrtcResult code) {
    CALL;
    switch (code) {
        case NVRTC_SUCCESS: return "NVRTC_SUCCESS";
        case NVRTC_ERROR_COMPILATION: return "NVRTC_ERROR_COMPILATION";
        case NVRTC_ERROR_INVALID_OPTION: return "NVRTC_ERROR_INVALID_OPTION";
        case NVRTC_ERROR_INVALID_PROGRAM: return "NVRTC_ERROR_INVALID_PROGRAM";
        default: return "NVRTC_ERROR of the stand-in";
    }
}
